#include "models/training/step_graph.h"

#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"

namespace ricci {
namespace {

void overwrite(const Tensor& fixed, const Tensor& next) {
  if (static_cast<bool>(fixed) != static_cast<bool>(next) || !(fixed.shape() == next.shape()))
    fail("cuda_graph: a batch of {} after batches of {}", {show(next.shape()), show(fixed.shape())});
  if (fixed) copy(fixed, next);
}

}  // namespace

void StepGraph::take_inputs(const std::vector<WeightedInputs>& batches) {
  if (inputs_.empty()) return static_cast<void>(inputs_ = batches);
  if (batches.size() != inputs_.size()) fail("cuda_graph: {} batches after {}", {batches.size(), inputs_.size()});
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto& [inputs, weight] = inputs_[i];
    overwrite(inputs.ids_bc, batches[i].inputs.ids_bc);
    overwrite(inputs.targets, batches[i].inputs.targets);
    overwrite(inputs.lengths_b, batches[i].inputs.lengths_b);
    overwrite(weight, batches[i].weight);
  }
}

const std::vector<Tensor>& StepGraph::run(const std::vector<WeightedInputs>& inputs, const Compute& compute) {
  take_inputs(inputs);
  const auto work = [&] { results_ = compute(inputs_); };
  ++steps_;
  if (steps_ <= 3) results_.clear();
  if (steps_ == 1) work();
  if (steps_ == 2) graph_.measure(work);
  if (steps_ == 3) graph_.record(work);
  if (steps_ >= 3) graph_.launch();
  return results_;
}

}  // namespace ricci
