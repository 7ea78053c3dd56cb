// The start of a run on multiple processes. Rank 0 has the run folder, and sends the config and the tokenizer; each rank opens the texts
// itself.
#pragma once
#include <memory>
#include <optional>

#include "apps/run/corpus.h"
#include "apps/run/run_folder.h"
#include "cuda/ranks/ranks.h"

namespace ricci::apps {

// The config of the run that rank 0 has opened, on every rank. Nothing, and a line on stdout, if the run is finished.
std::optional<TrainConfig> share_config(Ranks& ranks, const std::optional<RunFolder>& run);
// Errors: a rank is a different build than rank 0, or uses other vector instructions; a machine has fewer GPUs than ranks.
void compare_builds(Ranks& ranks, Device device);
// Opens the corpus in turn, so each machine encodes a text only once: rank 0 first, then one rank of each other machine, then the rest, who
// find the text in the cache. `tokenizer`: rank 0's, or null. Error: a rank has a different text than rank 0.
Corpus open_in_turn(Ranks& ranks, const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace ricci::apps
