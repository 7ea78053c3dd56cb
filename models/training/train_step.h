// One optimizer step: the gradient, summed over micro-batches, and the update.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "autograd/gradient_exchange.h"
#include "autograd/random.h"
#include "autograd/tape.h"
#include "cuda/device/graph.h"
#include "models/layers/inputs.h"
#include "models/model.h"
#include "models/training/optimizer.h"
#include "models/training/share.h"

namespace ricci {

// A micro-batch as a step reads it, on the device.
struct WeightedInputs {
  Inputs inputs;
  Tensor weight;  // f64 scalar: of the mean of the micro-batch in the mean of the step
};

// The first step runs as it always does, which loads and allocates what is made once; the second is measured, and the third
// recorded (cuda/device/graph.h). From then on a step is one launch. The inputs of all of these are the same tensors,
// overwritten at every step, and so are the results: what a step computes has the bits that it has without a graph.
class StepGraph {
 public:
  explicit StepGraph(Device device) : graph_(device) {}

  // Returns the results of `compute`, which does the same at every call, reads numbers that differ from step to step only from tensors
  // that were there before, and writes lasting results only to such tensors. Errors: inputs of another shape, as for Graph::record.
  using Compute = std::function<std::vector<Tensor>(const std::vector<WeightedInputs>&)>;
  const std::vector<Tensor>& run(const std::vector<WeightedInputs>& inputs, const Compute& compute);
  int64_t bytes() const { return graph_.bytes(); }  // the graph's block; 0 before the second step

 private:
  void take_inputs(const std::vector<WeightedInputs>& inputs);

  Graph graph_;
  std::vector<WeightedInputs> inputs_;
  std::vector<Tensor> results_;
  int64_t steps_ = 0;
};

struct StepResult {
  // The loss of training: sum of nats / number of targets that count in all micro-batches together, and what a model adds to it for
  // training alone, such as topdown's bag_weights. 0 when no target counts.
  double loss;
  double gradient_norm;  // before clipping
};

struct TrainStepOptions {
  uint64_t seed = 0;          // for dropout
  double clip = 0;            // largest norm of the gradient; 0 if any is allowed
  bool cuda_graph = false;    // for a device that has graphs
  int64_t max_ranks = 1;      // groups of micro-batches, added in a fixed tree: the bits do not depend on the number of ranks (share.h)
  int64_t micro_batches = 0;  // per step, on all ranks together; 0: the number that run() gets
  int64_t bucket_bytes = 0;   // for GradientLayout
};

// Dropout in a sequence depends on the seed, the step and the number of the sequence in the step alone, so that every division of a
// step into equal micro-batches has the same gradient up to rounding, and the same bits with batch_invariant. With topdown's bag_weights
// this holds for whole windows that are all scored: a bag loss is the mean over the cells of its micro-batch, and weighs the targets that
// the micro-batch scores.
class TrainStep {
 public:
  // For forward_backward() alone.
  TrainStep(Model& model, Device device, uint64_t seed)
      : model_(model), parameters_(model.parameters()), device_(device), options_{.seed = seed} {}
  // With several ranks each makes one: its optimizer has the blocks of GradientLayout(model.trained_parameters(), ranks.count()). All call
  // run() with the micro-batches of their Share, or explain_nonfinite(), together. Errors: more ranks than max_ranks; a graph with several.
  TrainStep(Model& model, Optimizer& optimizer, Device device, const TrainStepOptions& options, Ranks& ranks = Ranks::alone());

  // The gradient, its norm clipped, and the optimizer's update. Nothing is updated where loss or norm is not finite.
  // On several ranks each has the same result, and the bits that one process has. `for_ranks`: numbers that every rank gets, equally long.
  // `meanwhile` is called once a GPU has all of its work, because the time until the result is there is free for the host.
  // Errors: a gradient is left from before; fewer micro-batches than leaves, or not this rank's; a parameter that one rank or leaf has a
  // gradient for and another has not; as for StepGraph::run.
  StepResult run(
      const std::vector<MicroBatch>& micro_batches, int64_t step, double learning_rate, const std::vector<double>& for_ranks = {},
      const std::function<void()>& meanwhile = [] {});
  const std::vector<double>& from_ranks() const { return from_ranks_; }  // in the last run(), by all ranks in their order

  // The loss and, added to every Parameter::grad, its gradient. Gradients add up over the micro-batches of a leaf where they are, in f32
  // beside f32 masters.
  double forward_backward(const std::vector<MicroBatch>& micro_batches, int64_t step) const;

  int64_t graph_bytes() const { return graph_ ? graph_->bytes() : 0; }  // StepGraph::bytes

  // To be called when a result was not finite: runs the step again with every result looked at, and throws an error that
  // names the op that made the first NaN or infinity, and the step. Messages count steps from 1, the argument counts from 0.
  [[noreturn]] void explain_nonfinite(const std::vector<MicroBatch>& micro_batches, int64_t step, double loss) const;

 private:
  std::vector<double> weights_of(const std::vector<MicroBatch>& micro_batches, const Share& share) const;
  std::vector<WeightedInputs> weighted(const std::vector<MicroBatch>& micro_batches, const Share& share) const;
  RandomState random_of(int64_t step) const;  // for the first micro-batch
  RandomState random_in_memory(int64_t step) const;
  Share share_of(size_t micro_batches) const;
  // Returns the loss of each micro-batch, weighted. Without `sums` there is one leaf.
  struct Work {
    const std::vector<WeightedInputs>& micro_batches;
    Share share;
    RandomState random;
    LeafSums* sums = nullptr;
    GradientListener* listener = nullptr;  // notified by the last backward
    TapeOptions options = {};
  };
  std::vector<Tensor> gradient(const Work& work) const;
  Tensor total_of(const std::vector<Tensor>& losses) const;
  StepResult run_shared(const std::vector<WeightedInputs>& inputs, const Share& share, int64_t step, const std::vector<double>& for_ranks,
      const std::function<void()>& meanwhile);
  Tensor loss_and_gradient(const std::vector<WeightedInputs>& inputs, const Share& share, RandomState random) const;
  Tensor norm_of(const Tensor& numbers) const;
  void take_from_ranks(const Tensor& numbers, int64_t step);

  const Model& model_;
  std::vector<Parameter*> parameters_;
  Device device_;
  TrainStepOptions options_;
  Optimizer* optimizer_ = nullptr;
  Ranks* ranks_ = &Ranks::alone();
  std::unique_ptr<GradientExchange> exchange_ = {};  // null with one rank
  std::vector<int64_t> first_chunk_ = {};            // per trained parameter, in the gradient's norm; and their number
  std::vector<double> from_ranks_ = {};
  std::unique_ptr<LeafSums> sums_ = {};    // null with one leaf
  std::unique_ptr<StepGraph> graph_ = {};  // null if none was asked for
  Tensor first_stream_ = {};               // with a graph: random_of(step).next_stream, on the device
};

}  // namespace ricci
