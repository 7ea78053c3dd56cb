#include "apps/run/corpus/micro_batches.h"

#include <algorithm>

#include "apps/run/init/init.h"
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
  if (!batch.labels_b.empty())
    return {{tensor_of(batch.ids_bc, shape, device), tensor_of(batch.labels_b, {batch.batch}, device),
                tensor_of(batch.lengths_b, {batch.batch}, device)},
        batch.scored};
  return {{tensor_of(batch.ids_bc, shape, device), tensor_of(batch.targets_bc, shape, device)}, batch.scored};
}

StepLayout layout_of(const TrainConfig& config) {
  if (config.batch_invariant) return {1, config.batch * config.accumulation};
  return {config.batch, config.accumulation};
}

StepShape step_shape_of(const TrainConfig& config) {
  const StepLayout layout = layout_of(config);
  return {layout.sequences, *config.context, layout.micro_batches, storage_dtype(config.precision), config.recompute == Recompute::blocks,
      config.device, [freeze = config.freeze](Model& model) { freeze_parameters(model, freeze); }, config.cuda_graph};
}

std::vector<MicroBatch> micro_batches_of(const std::vector<Batch>& batches, Device device) {
  std::vector<MicroBatch> all;
  for (const Batch& batch : batches) all.push_back(micro_batch_of(batch, device));
  return all;
}

}  // namespace ricci::apps
