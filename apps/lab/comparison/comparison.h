// ricci compare: reads the models of a comparison file, makes them equal in size (contestants.cpp), and reports their runs with statistics
// over seeds (report.cpp).
// The file maps each model to a run file, or to a list of a run file and keys:
//   vanilla: small.yaml
//   top-down: [small.yaml, model.family=topdown, "model.layers=[2, 2]"]
// A grid is a list for a key with a single value: "lr=[1e-3, 3e-4]" makes two models, vanilla_lr_1e-3 and vanilla_lr_3e-4. For a key with a
// list, a grid contains a list: "model.mixer=[[dispatcher, sdp], sdp]". A grid in a run file or in keys on the command line needs no
// comparison file; this grid makes the models lr_1e-3 and lr_3e-4.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/lab/report/report.h"
#include "apps/run/train_config.h"
#include "core/choice.h"
#include "models/planning/plan.h"

namespace ricci::apps {

struct Evaluation {
  double tokens = 0, seconds = 0;  // since training began
  double nats = 0, accuracy = 0;   // NaN if not measured
};
// A training run of a model.
struct Outcome {
  std::string run;  // its folder
  uint64_t seed = 0;
  std::vector<Evaluation> evaluations = {};
  double seconds = 0, tokens_per_second = 0;  // training time; the median speed
  double peak_bytes = 0;                      // peak memory of tensors
  std::vector<std::string> builds = {};       // the build lines of its config.yaml (apps/run/config.h)

  const Evaluation& best() const { return *std::ranges::min_element(evaluations, {}, &Evaluation::nats); }
};

struct Contestant {
  std::string name, model, file;            // model: the name in the comparison file; file: the run file
  std::vector<std::string> overrides = {};  // KEY=VALUE or ~KEY
  Json grid = {};                           // its grid keys and values
  // Set by matched():
  TrainConfig config = {};
  std::string changed = {};  // "model.d=132", the last override, or empty
  Plan plan = {};            // plan of a step
  double vs_first = 1;       // the amount divided by the first model's amount
  // Set after training:
  std::vector<Outcome> outcomes = {};  // one per seed
};

// Reads the models in file order, one for each combination of the grids. `common` words follow a model's own words, and paths of run files
// are relative to the comparison file. A run file, a run or an empty path gives one model without a name. Errors: the file is neither a
// comparison file nor a run file, or mixes models and keys; a name is a duplicate or cannot be part of a run name; a key has two grids.
std::vector<Contestant> read_contestants(const std::string& path, const std::vector<std::string>& common = {});

// The amount to make equal: none, trained parameters, FLOPs of a step, or peak bytes of tensors in a step.
enum class Equal : uint8_t { nothing, parameters, flops, memory };
constexpr auto choices(Equal) { return std::array{"nothing", "parameters", "flops", "memory"}; }

// The key to change: model.d, in multiples of the number of heads, times 2 / rope_fraction with rotary positions (model.ff follows if no
// run file sets it); model.ff; or model.layers, in proportion if every scale has its own number of layers.
enum class Change : uint8_t { width, ff, layers };
constexpr auto choices(Change) { return std::array{"width", "ff", "layers"}; }

double amount_of(const Plan& plan, Equal equal);  // parameters for Equal::nothing

// Returns the models with these names, or all. The first model of the file, chosen or not, is the reference; the others are made as close
// to its amount as possible. If a model does not score the first positions of a window, all models get the key eval_from. Errors: a name is
// unknown; models read different tokens or have different losses; a model exceeds the first model even at its smallest size; models score
// different positions of documents with a mask.
std::vector<Contestant> matched(std::vector<Contestant> models, Equal equal, Change change, const std::vector<std::string>& only = {});

// The number n from 1 to 65,536 with value(n) closest to the target. `value` is increasing.
int64_t closest(const std::function<double(int64_t)>& value, double target);

// ---- The report
struct Comparison {
  std::string title, command;
  Equal equal = Equal::parameters;
  std::vector<Contestant> models;

  const TrainConfig& config() const { return models[0].config; }
  size_t seeds() const { return models[0].outcomes.size(); }  // 0 before training
};

// Reads the records and the config.yaml of a run. Errors: as for read_records; the run has no evaluation or no config.yaml.
Outcome read_outcome(const std::string& run, uint64_t seed);

// Charts of the validation loss (mean over seeds) against tokens and time, of the accuracy, if measured, and of the best loss against
// memory.
std::vector<Chart> charts_of(const Comparison& comparison);

// Reports a row for each model and, after training, losses, times and charts. The JSON contains the build that wrote it.
Report report_of(const Comparison& comparison);

}  // namespace ricci::apps
