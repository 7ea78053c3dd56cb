// A comparison file: the models to compare, each a run file and, where it is a list, keys that change it.
//   vanilla: small.yaml
//   top-down: [small.yaml, model.family=topdown, "model.layers=[2, 2]"]
#pragma once
#include <string>
#include <vector>

#include "apps/run/config/train_config.h"

namespace ricci::apps {

struct Contestant {
  std::string name, file;              // file: of the run
  std::vector<std::string> overrides;  // KEY=VALUE or ~KEY

  TrainConfig config(const std::vector<std::string>& more = {}) const;  // `more` has the last word. Errors: those of load_config
  std::vector<std::string> overrides_and(const std::vector<std::string>& more) const;
};

// In the order of the file. Run files are looked for beside it. Errors: an unreadable file, not YAML, no model, a name twice or
// one that cannot be a part of the name of a run, a model without a run file, a word that is neither KEY=VALUE nor ~KEY.
std::vector<Contestant> read_contestants(const std::string& path);

// Error: the first key that decides which tokens are read, and in which order, that is not the same for all of them.
void check_same_data(const std::vector<Contestant>& contestants, const std::vector<TrainConfig>& configs);

// Error: the first model whose loss cannot stand beside that of the first one, such as a classifier's beside a language model's.
void check_same_loss(const std::vector<Contestant>& contestants, const std::vector<TrainConfig>& configs);

}  // namespace ricci::apps
