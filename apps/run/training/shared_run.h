// A training on several ranks, around its steps. Rank 0 alone has the folder of the run: it sends the config and the tokenizer to the
// others, and they open the texts themselves. One rank alone receives and compares nothing.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "apps/run/config/train_config.h"
#include "apps/run/corpus/corpus.h"
#include "apps/run/folder/run_folder.h"
#include "cuda/ranks/ranks.h"
#include "models/model.h"
#include "models/training/checkpoint.h"
#include "models/training/share.h"

namespace ricci::apps {

// Calls f() on rank 0, however long that takes; every rank gets the text that it returns.
std::string from_first(Ranks& ranks, const std::function<std::string()>& f);

// The keys that are read, a line each, and the config that has them; without the user's settings of keys that follow from others.
std::string text_of(const TrainConfig& config);
TrainConfig config_of(const std::string& text);

// The part of a step that is this rank's.
Share share_of(const TrainConfig& config, const Ranks& ranks);
// Errors: a rank is another build than rank 0; a machine has fewer GPUs than ranks. Warnings on stderr: its processor has other vector
// instructions, so that bits depend on which rank computes what; each rank sees one GPU alone.
void compare_builds(Ranks& ranks, Device device);

// The corpus on every rank. A text is tokenised at most once per machine: rank 0 opens it first, then one rank of each machine, then the
// others. tokenizer: rank 0's, or null. Error also: a rank has another text than rank 0.
Corpus open_in_turn(Ranks& ranks, const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer);

// Gives every rank the weights that rank 0 has, before they are placed.
void weights_from_first(Ranks& ranks, Model& model);

// Brings every rank to the state of the newest checkpoint, or of a new run. `run` is rank 0's folder, null on the others. Errors: as for
// RunFolder's.
TrainState resume(Ranks& ranks, const RunFolder* run, Model& model, Optimizer& optimizer, uint64_t text_hash);

// Error: a rank has other values than rank 0, as after a fault of the memory. `saved` is the last step that was saved.
void compare_replicas(Ranks& ranks, Model& model, int64_t step, int64_t saved);

// 4 ranks on 2 machines, cpu by Open MPI 4.1.4, max_ranks 4; nothing of one process
std::string ranks_line(const Ranks& ranks, const TrainConfig& config);

}  // namespace ricci::apps
