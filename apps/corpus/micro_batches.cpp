#include "apps/corpus/micro_batches.h"

#include <algorithm>

#include "cuda/device/device.h"

namespace ricci::apps {
namespace {

Tensor tensor_of(const std::vector<int64_t>& ids_bc, const Shape& shape, Device device) {
  const Tensor t(shape, Dtype::i64);
  std::copy(ids_bc.begin(), ids_bc.end(), t.data<int64_t>());
  return to(t, device);
}

}  // namespace

MicroBatch micro_batch_of(const Batch& batch, Device device) {
  const Shape shape{batch.batch, batch.context};
  return {{tensor_of(batch.ids_bc, shape, device), tensor_of(batch.targets_bc, shape, device)}, batch.scored};
}

StepLayout layout_of(const TrainConfig& config) {
  if (config.batch_invariant) return {1, config.batch * config.accumulation};
  return {config.batch, config.accumulation};
}

std::vector<MicroBatch> micro_batches_of(const RandomCrops& crops, const TrainConfig& config, int64_t step, Device device) {
  std::vector<MicroBatch> all;
  for (int64_t i = 0; i < layout_of(config).micro_batches; ++i) all.push_back(micro_batch_of(crops.at(step, i), device));
  return all;
}

Evaluation evaluate(const Model& model, const Windows& windows, Device device, int64_t max_batches,
                    const std::function<void(int64_t)>& after_batch) {
  const int64_t count = max_batches > 0 ? std::min(max_batches, windows.batches()) : windows.batches();
  return ricci::evaluate(model, count, [&](int64_t i) { return micro_batch_of(windows.at(i), device); }, after_batch);
}

}  // namespace ricci::apps
