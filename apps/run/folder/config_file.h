// config.yaml of a run folder as text.
#pragma once
#include <cstdint>
#include <string>

#include "apps/run/config/train_config.h"

namespace ricci::apps {

// What a run that goes on after `step` writes there: the keys of the config, and on top, as comments, what its bits depend on
// beside them: commit, compiler, device, threads, seed; one line more for every other build or device that goes on with it.
// `old_text`: what stands there now, empty in a new run. Comments that somebody wrote into it stay at their keys.
std::string config_file_text(const TrainConfig& config, const std::string& old_text, int64_t step);

}  // namespace ricci::apps
