// The work that a training of multiple processes adds to that of one. Rank 0 has the folder of the run; the others get the config
// and the tokenizer from it, and open the texts themselves. One process sends, waits and compares nothing.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "apps/run/corpus.h"
#include "apps/run/train_config.h"
#include "cuda/ranks/ranks.h"
#include "models/model.h"

namespace ricci::apps {

// Errors: a rank is another build than rank 0, or computes with other vector instructions, because the updates would differ by rounding; a
// machine has fewer GPUs than ranks.
void compare_builds(Ranks& ranks, Device device);

// A text is tokenised at most once per machine: rank 0 opens it first, then one rank of each other machine, then the others, which find it
// in the cache. tokenizer: rank 0's, or null. Error also: a rank has another text than rank 0.
Corpus open_in_turn(Ranks& ranks, const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer);

// Error: a rank has other values than rank 0, for example because of a memory fault. `saved` is the last step that was saved.
void compare_replicas(Ranks& ranks, Model& model, int64_t step, int64_t saved);

// 4 ranks on 2 machines, cpu by Open MPI 4.1.4; nothing of one process
std::string ranks_line(const Ranks& ranks, Device device);

}  // namespace ricci::apps
