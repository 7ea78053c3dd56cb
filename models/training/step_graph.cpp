#include "models/training/step_graph.h"

#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"

namespace ricci {
namespace {

void overwrite(const Tensor& fixed, const Tensor& next) {
  if (static_cast<bool>(fixed) != static_cast<bool>(next) || !(fixed.shape() == next.shape()))
    fail("cuda_graph: the batch has shape {}, expected {} as before", {show(next.shape()), show(fixed.shape())});
  if (fixed) copy(fixed, next);
}

}  // namespace

RandomState StepGraph::in_memory(const RandomState& random) const {
  const Tensor first({}, Dtype::i64);
  *first.data<int64_t>() = static_cast<int64_t>(random.next_stream);
  copy(first_stream_, first);
  return {random.seed, 0, random.micro_batch, reinterpret_cast<const uint64_t*>(first_stream_.data<int64_t>())};
}

void StepGraph::take(const std::vector<Batch>& batches, const std::vector<Tensor>& weights) {
  if (batches_.empty()) {
    batches_ = batches;
    weights_ = weights;
    return;
  }
  if (batches.size() != batches_.size()) fail("cuda_graph: there are {} batches, expected {} as before", {batches.size(), batches_.size()});
  for (size_t i = 0; i < batches.size(); ++i) {
    for (Tensor Batch::*part : {&Batch::ids_bc, &Batch::targets, &Batch::lengths_b}) overwrite(batches_[i].*part, batches[i].*part);
    overwrite(weights_[i], weights[i]);
  }
}

const std::vector<Tensor>& StepGraph::run(const std::vector<Batch>& batches, const std::vector<Tensor>& weights, const Compute& compute) {
  take(batches, weights);
  const auto work = [&] { results_ = compute(batches_, weights_); };
  ++steps_;
  if (steps_ <= 3) results_.clear();
  if (steps_ == 1) work();
  if (steps_ == 2) graph_.measure(work);
  if (steps_ == 3) graph_.record(work);
  if (steps_ >= 3) graph_.launch();
  return results_;
}

}  // namespace ricci
