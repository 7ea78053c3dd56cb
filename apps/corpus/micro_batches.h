// From text to what models read: the batches of data/ as tensors on a device.
#pragma once
#include <functional>
#include <vector>

#include "apps/config/train_config.h"
#include "data/batches.h"
#include "models/evaluation/evaluation.h"
#include "models/training/micro_batch.h"

namespace ricci::apps {

MicroBatch micro_batch_of(const Batch& batch, Device device);

// How the sequences of a step are divided. batch_invariant takes one sequence at a time, whatever the batch, so that even
// the order of all sums is the same.
struct StepLayout {
  int64_t sequences;      // of a micro-batch
  int64_t micro_batches;  // of a step
};
StepLayout layout_of(const TrainConfig& config);

// The micro-batches of a step; the `batch` of crops must be layout_of(config).sequences.
std::vector<MicroBatch> micro_batches_of(const RandomCrops& crops, const TrainConfig& config, int64_t step, Device device);

// Over all windows, or the first `max_batches` batches of them when that is not 0.
Evaluation evaluate(const Model& model, const Windows& windows, Device device, int64_t max_batches = 0,
                    const std::function<void(int64_t done)>& after_batch = {});

}  // namespace ricci::apps
