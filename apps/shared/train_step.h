// The gradient of one optimizer step, accumulated over micro-batches.
#pragma once
#include <memory>
#include <vector>

#include "apps/shared/step_graph.h"
#include "apps/shared/train_config.h"
#include "core/tensor.h"
#include "data/batches.h"
#include "models/model.h"

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

class TrainStep {
 public:
  // With `graph` the device's work is recorded and replayed (apps/shared/step_graph.h); for a device that has graphs.
  TrainStep(Model& model, Device device, uint64_t seed, bool graph = false);

  // The loss of a step, sum of nats / number of targets other than -1 in all parts together (0 when there are none), and
  // added to every Parameter::grad its gradient. Gradients of bf16 are summed over the parts in f32.
  double forward_backward(const std::vector<Batch>& parts, int64_t step) const;

  // To be called when that was not finite: runs the step again with every result looked at, and throws an error that names
  // the op that made the first NaN or infinity.
  [[noreturn]] void explain_nonfinite(const std::vector<Batch>& parts, int64_t step, double loss) const;

 private:
  std::vector<PartInputs> inputs_of(const std::vector<Batch>& parts) const;
  Tensor part_loss(const PartInputs& inputs, int64_t step, size_t part) const;
  std::vector<Tensor> compute(const std::vector<PartInputs>& inputs, int64_t step) const;

  const Model& model_;
  std::vector<Parameter*> parameters_;
  Device device_;
  uint64_t seed_;
  std::unique_ptr<StepGraph> graph_;  // null: none asked for
};

}  // namespace ricci::apps
