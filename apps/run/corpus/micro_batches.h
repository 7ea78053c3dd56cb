// From text to what models read: the batches of data/ as tensors on a device.
#pragma once
#include <vector>

#include "apps/run/config/train_config.h"
#include "data/feeds/text_batches.h"
#include "models/layers/inputs.h"
#include "models/planning/plan.h"

namespace ricci::apps {

MicroBatch micro_batch_of(const Batch& batch, Device device);

// How the sequences of a step are divided. batch_invariant takes one sequence at a time, whatever the batch, so that even
// the order of all sums is the same.
struct StepLayout {
  int64_t sequences;      // of a micro-batch
  int64_t micro_batches;  // of a step
};
StepLayout layout_of(const TrainConfig& config);

// The same for a plan of the step (models/planning/plan.h).
StepShape step_shape_of(const TrainConfig& config);

// The batches of a step out of RandomCrops or ColumnBatches, whose `batch` must be layout_of(config).sequences.
template <class Batches> std::vector<Batch> batches_of(const Batches& batches, const TrainConfig& config, int64_t step) {
  std::vector<Batch> all;
  for (int64_t i = 0; i < layout_of(config).micro_batches; ++i) all.push_back(batches.at(step, i));
  return all;
}

// The same on a device.
std::vector<MicroBatch> micro_batches_of(const std::vector<Batch>& batches, Device device);
inline std::vector<MicroBatch> micro_batches_of(const RandomCrops& crops, const TrainConfig& config, int64_t step, Device device) {
  return micro_batches_of(batches_of(crops, config, step), device);
}

}  // namespace ricci::apps
