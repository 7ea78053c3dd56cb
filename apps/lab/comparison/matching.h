// Models of equal size: what differs between families is then the family, and not how much of it there is.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "apps/lab/comparison/contestants.h"
#include "core/choice.h"
#include "models/planning/plan.h"

namespace ricci::apps {

// The amount that is made equal to the first model's.
enum class Equal : uint8_t {
  nothing,     // none: each model is as its run file says
  parameters,  // numbers that are trained
  flops,       // of a step
  memory,      // the largest number of bytes of tensors at one time in a step
};
constexpr auto choices(Equal) { return std::array{"nothing", "parameters", "flops", "memory"}; }

// The key that is changed to make it so.
enum class Change : uint8_t {
  width,   // model.d, in multiples of the heads; model.ff follows where no run file gives it
  ff,      // model.ff, the width of the feed-forward layers
  layers,  // model.layers; where every scale has its own, in proportion
};
constexpr auto choices(Change) { return std::array{"width", "ff", "layers"}; }

struct Matched {
  std::string name, file;              // of the contestant
  TrainConfig config;                  // with all overrides
  std::vector<std::string> overrides;  // all that stand behind the run file
  std::string changed;                 // "model.d=132"; empty: nothing
  Plan plan;                           // of a step
  double beside_first = 1;             // the amount divided by that of the file's first model
};
double amount_of(const Plan& plan, Equal equal);  // of nothing: parameters

// The models whose names are in `only`, in the order of the file; all of them where it is empty. The file's first model, chosen or not, is
// what the others are made equal to: it stays as it is, and of each other one the closest that there is is taken. `common` overrides hold
// for all of them. Where the losses of some models leave out the first positions of a window, all models get the key eval_from, so that
// evaluations score the same tokens for each; which models are chosen makes no difference to it.
// Errors: those of load_config, check_same_data and check_same_loss; a name in `only` that no model has; a model that has more than the
// first one even at its smallest; models that count other positions of generated rows.
std::vector<Matched> matched(const std::vector<Contestant>& contestants, const std::vector<std::string>& common, Equal equal, Change change,
    const std::vector<std::string>& only = {});

// The number from 1 to `max` whose value is closest to the target; values grow with numbers. Starts to look around `guess`.
int64_t closest(const std::function<double(int64_t)>& value, double target, int64_t guess, int64_t max);

}  // namespace ricci::apps
