// One optimizer step: the gradient, summed over micro-batches, and the update.
#pragma once
#include <memory>
#include <vector>

#include "autograd/random.h"
#include "autograd/tape.h"
#include "models/model.h"
#include "models/training/micro_batch.h"
#include "models/training/optimizer.h"
#include "models/training/step_graph.h"

namespace ricci {

struct StepResult {
  // The loss of training: sum of nats / number of targets that count in all micro-batches together, and what a model adds to it for
  // training alone, such as topdown's bag_weights. 0 when no target counts.
  double loss;
  double gradient_norm;  // before clipping
};

struct TrainStepOptions {
  uint64_t seed = 0;        // of dropout
  double clip = 0;          // largest norm of the gradient; 0: any
  bool cuda_graph = false;  // models/training/step_graph.h; for a device that has graphs
};

// What dropout zeroes in a sequence depends on the seed, the step and the number of the sequence in the step alone, so
// that every division of a step into equal micro-batches has the same gradient. With topdown's bag_weights this needs whole windows, all
// of them scored: a bag loss is the mean over the cells of its micro-batch, and weighs as many targets as the micro-batch scores.
class TrainStep {
 public:
  // For forward_backward() alone.
  TrainStep(Model& model, Device device, uint64_t seed)
      : model_(model), parameters_(model.parameters()), device_(device), options_{.seed = seed} {}
  TrainStep(Model& model, Optimizer& optimizer, Device device, const TrainStepOptions& options);

  // The gradient, its norm clipped, and the optimizer's update. Nothing is updated where loss or norm is not finite.
  // Errors: a gradient is left from before, those of StepGraph::run.
  StepResult run(const std::vector<MicroBatch>& micro_batches, int64_t step, double learning_rate);

  // The loss and, added to every Parameter::grad, its gradient. Gradients add up over the micro-batches where they are, in f32 beside f32
  // masters.
  double forward_backward(const std::vector<MicroBatch>& micro_batches, int64_t step) const;

  int64_t graph_bytes() const { return graph_ ? graph_->bytes() : 0; }  // StepGraph::bytes

  // To be called when a result was not finite: runs the step again with every result looked at, and throws an error that
  // names the op that made the first NaN or infinity, and the step by its number in messages, which is 1 for the first (step 0).
  [[noreturn]] void explain_nonfinite(const std::vector<MicroBatch>& micro_batches, int64_t step, double loss) const;

 private:
  std::vector<WeightedInputs> weighted(const std::vector<MicroBatch>& micro_batches) const;
  RandomState random_of(int64_t step) const;  // for the first micro-batch
  RandomState random_in_memory(int64_t step) const;
  Tensor gradient(
      const std::vector<WeightedInputs>& micro_batches, RandomState random, TapeOptions options = {}) const;  // returns the loss

  const Model& model_;
  std::vector<Parameter*> parameters_;
  Device device_;
  TrainStepOptions options_;
  Optimizer* optimizer_ = nullptr;
  std::unique_ptr<StepGraph> graph_ = {};  // null: none asked for
  Tensor first_stream_ = {};               // with a graph: random_of(step).next_stream, on the device
};

}  // namespace ricci
