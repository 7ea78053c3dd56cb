// One optimizer step: the gradient, accumulated over micro-batches, and the update.
#pragma once
#include <memory>
#include <vector>

#include "apps/shared/step_graph.h"
#include "apps/shared/train_config.h"
#include "autograd/random.h"
#include "autograd/tape.h"
#include "core/tensor.h"
#include "data/batches.h"
#include "models/model.h"
#include "models/optim/optimizer.h"

namespace ricci::apps {

// How the sequences of a step are cut. The rows of a step, and what dropout zeroes in each, depend on seed, step and the
// number of the row alone, so every cut has the same gradient; batch_invariant takes one sequence at a time, whatever the
// batch, so that even the order of all sums is the same.
struct Cut {
  int64_t sequences;  // that are computed together
  int64_t parts;      // per step
};
Cut cut_of(const TrainConfig& config);

// The parts of a step; their `batch` is that of crops, which must be cut_of(config).sequences.
std::vector<Batch> batches_of_step(const RandomCrops& crops, const TrainConfig& config, int64_t step);

struct StepResult {
  double loss;           // sum of nats / number of targets other than -1 in all parts together; 0 when there are none
  double gradient_norm;  // before clipping
};

class TrainStep {
 public:
  TrainStep(Model& model, Device device, uint64_t seed) : model_(model), parameters_(model.parameters()), device_(device), seed_(seed) {}
  // For run(), with the config's seed, clip and cuda_graph (apps/shared/step_graph.h; for a device that has graphs).
  TrainStep(Model& model, Optimizer& optimizer, Device device, const TrainConfig& config);

  // The gradient, its norm clipped, and the optimizer's update. Nothing is updated where loss or norm is not finite.
  // Errors: a gradient is left from before, those of StepGraph::run.
  StepResult run(const std::vector<Batch>& parts, int64_t step, double learning_rate);

  // The loss and, added to every Parameter::grad, its gradient. Gradients of bf16 are summed over the parts in f32.
  double forward_backward(const std::vector<Batch>& parts, int64_t step) const;

  // To be called when a result was not finite: runs the step again with every result looked at, and throws an error that
  // names the op that made the first NaN or infinity.
  [[noreturn]] void explain_nonfinite(const std::vector<Batch>& parts, int64_t step, double loss) const;

 private:
  std::vector<PartInputs> inputs_of(const std::vector<Batch>& parts) const;
  RandomState random_of(int64_t step) const;  // for the first part
  RandomState random_in_memory(int64_t step) const;
  Tensor gradient(const std::vector<PartInputs>& inputs, RandomState random, TapeOptions options = {}) const;  // returns the loss

  const Model& model_;
  std::vector<Parameter*> parameters_;
  Device device_;
  uint64_t seed_;
  Optimizer* optimizer_ = nullptr;
  double clip_ = 0;
  std::unique_ptr<StepGraph> graph_ = {};  // null: none asked for
  Tensor first_stream_ = {};               // with a graph: random_of(step).next_stream, on the device
};

}  // namespace ricci::apps
