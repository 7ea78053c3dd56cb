// The models of a comparison, read from a file and made equal in size, so that they differ by their family and not by their size.
// The file names a run file for each model, alone or in a list with keys that change it:
//   vanilla: small.yaml
//   top-down: [small.yaml, model.family=topdown, "model.layers=[2, 2]"]
// A list for a key that takes one value is a grid: "lr=[1e-3, 3e-4]" makes two models, named vanilla_lr_1e-3 and vanilla_lr_3e-4.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "apps/run/train_config.h"
#include "core/choice.h"
#include "models/planning/plan.h"

namespace ricci::apps {

struct Contestant {
  std::string name, model, file;                               // model: its name in the file; file: of the run
  std::vector<std::string> overrides = {};                     // KEY=VALUE or ~KEY
  std::vector<std::pair<std::string, std::string>> grid = {};  // its keys and values of a grid

  TrainConfig config(const std::vector<std::string>& more = {}) const;  // `more` has the last word. Errors: as for load_config
  std::vector<std::string> overrides_and(const std::vector<std::string>& more) const;
};

// In the order of the file. Run files are looked for beside it. Errors: an unreadable file, not YAML, no model, a name twice or
// one that cannot be a part of the name of a run, a model without a run file, a word that is neither KEY=VALUE nor ~KEY.
std::vector<Contestant> read_contestants(const std::string& path);

// The models for every combination of the grids among the common overrides, which are taken out of them. Errors: as for parse_yaml; a
// list inside of a list; a value twice; a key that has a grid and another word.
std::vector<Contestant> with_grid(std::vector<Contestant> contestants, std::vector<std::string>& common);

// The amount that is made equal to the first model's.
enum class Equal : uint8_t {
  nothing,     // each model is as in its run file
  parameters,  // numbers that are trained
  flops,       // per step
  memory,      // the largest number of bytes of tensors at one time in a step
};
constexpr auto choices(Equal) { return std::array{"nothing", "parameters", "flops", "memory"}; }

// The key that is changed to make it so.
enum class Change : uint8_t {
  width,   // model.d, in multiples of the heads, times 2 / rope_fraction with rope; model.ff follows where no run file gives it
  ff,      // model.ff, the width of the feed-forward layers
  layers,  // model.layers; where every scale has its own, in proportion
};
constexpr auto choices(Change) { return std::array{"width", "ff", "layers"}; }

struct Matched {
  std::string name, file;                                      // as in Contestant
  TrainConfig config = {};                                     // with all overrides
  std::vector<std::string> overrides = {};                     // all that follow the run file
  std::vector<std::pair<std::string, std::string>> grid = {};  // as in Contestant
  std::string changed = {};                                    // "model.d=132"; empty if nothing changed
  Plan plan = {};                                              // for a step
  double beside_first = 1;                                     // the amount divided by the amount of the file's first model
};
double amount_of(const Plan& plan, Equal equal);  // parameters for Equal::nothing

// The models whose names, or whose names in the file, are in `only`, in the order of the file; all of them if it is empty. The file's first
// model, chosen or not, stays as it is, and the others are made as equal to it as they can be. `common` overrides hold for all of them. If
// the losses of some models leave out the first positions of a window, all models get the key eval_from, so that evaluations score the same
// tokens for each; which models are chosen makes no difference to it. Errors: as for load_config; models that do not read the same tokens,
// or whose losses are of different things; a name in `only` that no model has; a model that has more than the first one even at its
// smallest; models that count other positions of generated rows.
std::vector<Matched> matched(const std::vector<Contestant>& contestants, const std::vector<std::string>& common, Equal equal, Change change,
    const std::vector<std::string>& only = {});

// The number from 1 to `max` whose value is closest to the target; values grow with numbers. Starts to look around `guess`.
int64_t closest(const std::function<double(int64_t)>& value, double target, int64_t guess, int64_t max);

// ---- Another program of this build as a child process (child.cpp)
// Runs ricci-NAME, which is next to this program, and returns its exit code. Its output goes to stderr, because stdout is for the result.
// The child is in the process group of its parent: Ctrl-C and Ctrl-Z reach both, and the child saves and ends. While an Interrupt is alive,
// a request to this process is passed on. Returns nothing if the request came before the child was ready to save: it then ended at once.
// The child never outlives this process. Errors: the program cannot be started, or another signal ended it.
std::optional<int> run_program(const std::string& name, const std::vector<std::string>& arguments);

}  // namespace ricci::apps
