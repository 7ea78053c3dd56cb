// A training step whose loss or gradient was not finite, kept so that it can be computed again.
#pragma once
#include <string>
#include <vector>

#include "apps/run/folder/run_folder.h"
#include "models/layers/inputs.h"

namespace ricci::apps {

// Writes nonfinite.safetensors into the run folder: the weights before the step, the ids and targets of its micro-batches as
// batch.0.ids, batch.0.targets, ..., and its number. The seed of dropout is in config.yaml.
void save_nonfinite_step(const RunFolder& run, Model& model, const std::vector<MicroBatch>& micro_batches, int64_t step);

// Runs the forward and the backward of that step again; overrides such as precision=f32 or device=cpu may differ from the run's keys.
// Prints the loss where everything is finite this time. Errors: the step, the op that made the first NaN or infinity, and its place in
// the source, as the training told them; there is no such file.
int replay_nonfinite_step(const std::string& folder, const std::vector<std::string>& overrides);

}  // namespace ricci::apps
