// The start of a run on multiple processes. Rank 0 opens the run folder, and sends the config and the tokenizer. Each rank opens the texts.
#pragma once
#include <memory>
#include <optional>

#include "apps/run/corpus.h"
#include "apps/run/run_folder.h"
#include "cuda/ranks/ranks.h"

namespace ricci::apps {

// Sends rank 0's config to every rank. If the run is finished, prints a line and returns nothing.
std::optional<TrainConfig> share_config(Ranks& ranks, const std::optional<RunFolder>& run);
// Throws Error if a rank differs from rank 0 in its build or vector instructions, or a machine has fewer GPUs than ranks.
void compare_builds(Ranks& ranks, Device device);
// Opens the corpus on one rank after another, so each machine encodes a text only once: rank 0 first, then one rank of each other machine,
// then the other ranks, from the cache. `tokenizer`: rank 0's, or null. Error: a rank's text differs from rank 0's.
Corpus open_in_turn(Ranks& ranks, const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace ricci::apps
