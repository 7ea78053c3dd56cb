#include "models/training/step_graph.h"

#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"

namespace ricci {
namespace {

void overwrite(const Tensor& fixed, const Tensor& now) {
  if (static_cast<bool>(fixed) != static_cast<bool>(now) || !(fixed.shape() == now.shape()))
    fail("cuda_graph: a batch of {} after batches of {}", {show(now.shape()), show(fixed.shape())});
  if (fixed) copy(fixed, now);
}

}  // namespace

void StepGraph::take_inputs(const std::vector<WeightedInputs>& now) {
  if (inputs_.empty()) {
    inputs_ = now;
    return;
  }
  if (now.size() != inputs_.size()) fail("cuda_graph: {} batches after {}", {now.size(), inputs_.size()});
  for (size_t i = 0; i < now.size(); ++i) {
    const auto& [inputs, weight] = inputs_[i];
    overwrite(inputs.ids_bc, now[i].inputs.ids_bc);
    overwrite(inputs.targets, now[i].inputs.targets);
    overwrite(inputs.lengths_b, now[i].inputs.lengths_b);
    overwrite(weight, now[i].weight);
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
