// One optimizer step: the gradient, summed over micro-batches, and the update.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "autograd/random.h"
#include "autograd/tape.h"
#include "core/fields.h"
#include "cuda/ranks/ranks.h"
#include "models/layers/inputs.h"
#include "models/model.h"
#include "models/training/optimizer.h"
#include "models/training/step_graph.h"

namespace ricci {

struct StepResult {
  // The loss of training: sum of nats / number of targets that count in all micro-batches together, and what a model adds to it only for
  // training, such as topdown's bag_weights. 0 when no target counts.
  double loss;
  double gradient_norm;  // before clipping
};

struct TrainStepOptions {
  uint64_t seed = 0;                // for dropout
  double clip = 0;                  // largest norm of the gradient; 0 if any is allowed
  bool cuda_graph = false;          // for a device that has graphs
  int64_t first_micro_batch = 0;    // share_of().lo: the number in the step of the first micro-batch that run() gets
  Dtype reduce_dtype = Dtype::f32;  // for sum_gradients
};

// The micro-batches of a step that this rank computes, of all that the ranks share.
Range share_of(int64_t micro_batches, const Ranks& ranks);

// Dropout in a sequence depends only on the seed, the step and the number of the sequence in the step. So every division of a step into
// equal micro-batches has the same gradient up to rounding, and the same bits with batch_invariant. With topdown's bag_weights
// this holds for whole windows that are all scored: a bag loss is the mean over the cells of its micro-batch, and weighs the targets that
// the micro-batch scores.
class TrainStep {
 public:
  // Only for forward_backward().
  TrainStep(Model& model, Device device, uint64_t seed)
      : model_(model), parameters_(model.parameters()), device_(device), options_{.seed = seed} {}
  // With multiple ranks each makes one, and they call run() or explain_nonfinite() together. Error: a graph with multiple ranks.
  TrainStep(Model& model, Optimizer& optimizer, Device device, const TrainStepOptions& options, Ranks& ranks = Ranks::alone());

  // The gradient, its norm clipped, and the optimizer's update. Nothing is updated if loss or norm is not finite. Every rank has the same
  // result. `meanwhile` is called once a GPU has all of its work, because the time until the result is there is free for the host.
  // Errors: a gradient is left from before; as for StepGraph::run.
  StepResult run(
      const std::vector<MicroBatch>& micro_batches, int64_t step, double learning_rate, const std::function<void()>& meanwhile = [] {});

  // The loss and, added to every Parameter::grad, its gradient; f32 beside f32 masters.
  double forward_backward(const std::vector<MicroBatch>& micro_batches, int64_t step) const;

  int64_t graph_bytes() const { return graph_ ? graph_->bytes() : 0; }  // StepGraph::bytes

  // To be called when a result was not finite: runs the step again with every result looked at, and throws an error that
  // names the op that made the first NaN or infinity, and the step. Messages count steps from 1, the argument counts from 0.
  [[noreturn]] void explain_nonfinite(const std::vector<MicroBatch>& micro_batches, int64_t step, double loss) const;

 private:
  std::vector<WeightedInputs> weighted(const std::vector<MicroBatch>& micro_batches) const;
  RandomState random_of(int64_t step) const;  // for the first micro-batch
  Tensor loss_and_gradient(const std::vector<WeightedInputs>& micro_batches, RandomState random, const TapeOptions& options = {}) const;

  const Model& model_;
  std::vector<Parameter*> parameters_;
  Device device_;
  TrainStepOptions options_;
  Optimizer* optimizer_ = nullptr;
  Ranks& ranks_ = Ranks::alone();
  std::unique_ptr<StepGraph> graph_ = {};  // null if none was asked for
};

}  // namespace ricci
