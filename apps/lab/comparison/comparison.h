// ricci compare: reads the models of a comparison file and makes them equal in size (contestants.cpp); then reports their runs, with
// statistics over the seeds (report.cpp).
// The file names a run file for each model, or a list of it and keys that change it:
//   vanilla: small.yaml
//   top-down: [small.yaml, model.family=topdown, "model.layers=[2, 2]"]
// A list for a key that takes one value is a grid: "lr=[1e-3, 3e-4]" makes two models, named vanilla_lr_1e-3 and vanilla_lr_3e-4. For a key
// that takes a list, a grid has a list in it: "model.mixer=[[dispatcher, sdp], sdp]". With a grid, a run file or keys need no comparison
// file: they make the models lr_1e-3 and lr_3e-4.
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
  double nats = 0, accuracy = 0;   // NaN if it was not measured
};
// One training of one model.
struct Outcome {
  std::string run;  // its folder
  uint64_t seed = 0;
  std::vector<Evaluation> evaluations = {};
  double seconds = 0, tokens_per_second = 0;  // for training; the median speed
  double peak_bytes = 0;                      // for tensors
  std::vector<std::string> builds = {};       // that trained it, from its config.yaml (apps/run/config.h)

  const Evaluation& best() const { return *std::ranges::min_element(evaluations, {}, &Evaluation::nats); }
};

struct Contestant {
  std::string name, model, file;            // model: its name in the comparison file; file: its run file
  std::vector<std::string> overrides = {};  // KEY=VALUE or ~KEY
  Json grid = {};                           // its keys and values of a grid
  // By matched():
  TrainConfig config = {};
  std::string changed = {};  // "model.d=132", the last override; empty if nothing changed
  Plan plan = {};            // for a step
  double vs_first = 1;       // its amount divided by the first model's
  // After training:
  std::vector<Outcome> outcomes = {};  // one per seed
};

// Reads the models in the order of the file, one for every combination of the grids. `common` words follow their own, and run files are
// relative to the file. A run file, a run or an empty path is one model without a name. Errors: none of these files, or one with models and
// keys; a duplicate name, or one that cannot be part of the name of a run; a key of a grid again.
std::vector<Contestant> read_contestants(const std::string& path, const std::vector<std::string>& common = {});

// The amount that is made equal: none, trained numbers, FLOPs of a step, or the peak bytes of tensors in a step.
enum class Equal : uint8_t { nothing, parameters, flops, memory };
constexpr auto choices(Equal) { return std::array{"nothing", "parameters", "flops", "memory"}; }

// The key that changes to make it so: model.d, in multiples of the heads, times 2 / rope_fraction with rope (model.ff follows if no run
// file sets it); model.ff; or model.layers, in proportion if every scale has its own.
enum class Change : uint8_t { width, ff, layers };
constexpr auto choices(Change) { return std::array{"width", "ff", "layers"}; }

double amount_of(const Plan& plan, Equal equal);  // parameters for Equal::nothing

// Returns the models with these names, or all of them. The first model of the file, chosen or not, is the reference; the others are made as
// equal to it as possible. If some losses leave out the first positions of a window, all models get the key eval_from. Errors: an unknown
// name; models that read different tokens or have different losses; a model that exceeds the first one even at its smallest; models that
// score different positions of documents with a mask.
std::vector<Contestant> matched(std::vector<Contestant> models, Equal equal, Change change, const std::vector<std::string>& only = {});

// The number from 1 to 65,536 with the value closest to the target. Values grow with numbers.
int64_t closest(const std::function<double(int64_t)>& value, double target);

// ---- The report
struct Comparison {
  std::string title, command;
  Equal equal = Equal::parameters;
  std::vector<Contestant> models;

  const TrainConfig& config() const { return models[0].config; }
  size_t seeds() const { return models[0].outcomes.size(); }  // 0 before training
};

// Reads the records and the config.yaml of a run. Errors: as for read_records; a run without an evaluation, or without that file.
Outcome read_outcome(const std::string& run, uint64_t seed);

// The validation loss, a mean over the seeds, against tokens and time; the accuracy, if measured; the best loss against memory.
std::vector<Chart> charts_of(const Comparison& comparison);

// A row for each model; losses, times and charts only after training. The JSON names the build that writes it.
Report report_of(const Comparison& comparison);

}  // namespace ricci::apps
