#include "apps/shared/step_graph.h"

#include "core/dims.h"
#include "core/error.h"
#include "cuda/device.h"

namespace ricci::apps {
namespace {

void overwrite(const Tensor& fixed, const Tensor& now) {
  if (!(fixed.shape() == now.shape())) fail("cuda_graph: a batch of {} after batches of {}", {show(now.shape()), show(fixed.shape())});
  copy(fixed, now);
}

}  // namespace

void StepGraph::take_inputs(const std::vector<PartInputs>& inputs) {
  if (inputs_.empty()) return static_cast<void>(inputs_ = inputs);
  if (inputs.size() != inputs_.size()) fail("cuda_graph: {} batches after {}", {inputs.size(), inputs_.size()});
  for (size_t i = 0; i < inputs.size(); ++i) {
    overwrite(inputs_[i].ids_bc, inputs[i].ids_bc);
    overwrite(inputs_[i].targets_bc, inputs[i].targets_bc);
    overwrite(inputs_[i].weight, inputs[i].weight);
  }
}

const std::vector<Tensor>& StepGraph::run(const std::vector<PartInputs>& inputs, const Compute& compute) {
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

}  // namespace ricci::apps
