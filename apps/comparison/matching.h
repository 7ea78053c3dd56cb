// Models of equal size: what differs between families is then the family, and not how much of it there is.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "apps/comparison/contestants.h"
#include "core/choice.h"
#include "models/planning/plan.h"

namespace ricci::apps {

// What the models have as much of as the first one.
enum class Equal : uint8_t {
  nothing,     // each is as its run file says
  parameters,  // that are trained
  flops,       // of a step
  memory,      // most bytes of tensors at one time in a step
};
constexpr auto choices(Equal) { return std::array{"nothing", "parameters", "flops", "memory"}; }

// What is changed to that end.
enum class Change : uint8_t {
  width,   // model.d, in multiples of the heads; model.ff follows where no run file gives it
  ff,      // model.ff, the width of the feed-forward layers
  layers,  // model.layers; where every scale has its own, in proportion
};
constexpr auto choices(Change) { return std::array{"width", "ff", "layers"}; }

struct Matched {
  TrainConfig config;                  // with `changed`
  std::vector<std::string> overrides;  // all that stand behind the run file
  std::string changed;                 // "model.d=132"; empty: nothing
  Plan plan;                           // of a step
  double amount(Equal equal) const;
};

// The first model is as it is; of the others the closest that there is. `common` overrides hold for all of them.
// Errors: those of load_config and of check_same_data; a model that has more than the first one even at its smallest.
std::vector<Matched> matched(const std::vector<Contestant>& contestants, const std::vector<std::string>& common, Equal equal, Change change);

// The number from 1 to `most` whose value is closest to the target; values grow with numbers. Starts to look around `guess`.
int64_t closest(const std::function<double(int64_t)>& value, double target, int64_t guess, int64_t most);

}  // namespace ricci::apps
