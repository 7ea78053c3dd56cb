// ricci-compare, in the order to read: matching.h reads the models of a comparison and makes them equal in size, child.cpp trains each, and
// report.h reports the results, with statistics over the seeds (apps/lab/report/statistics.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/lab/comparison/matching.h"
#include "apps/lab/report/report.h"

namespace ricci::apps {

// One evaluation of the validation text, while training.
struct Measurement {
  double tokens = 0, seconds = 0, nats = 0;  // seconds: of training alone
  std::optional<double> accuracy = {};       // classifiers and data with a mask have one
};

// One training of one model.
struct Outcome {
  std::string run;  // its folder
  uint64_t seed = 0;
  std::vector<Measurement> measurements;
  double min_nats = 0;                   // over all evaluations
  std::optional<double> accuracy = {};   // in the evaluation with the lowest nats
  double seconds = 0;                    // training alone, without evaluations and pauses
  double tokens_per_second = 0;          // the median of what was recorded
  double peak_bytes = 0;                 // the largest number of bytes of tensors at one time
  std::vector<std::string> builds = {};  // the builds that trained it, from its config.yaml (apps/run/config.h)
};

struct Compared : Matched {
  std::vector<Outcome> outcomes = {};  // one per seed
};

struct Comparison {
  std::string title, command;
  Equal equal = Equal::parameters;
  std::vector<Compared> models;

  const TrainConfig& config() const { return models[0].config; }
  bool is_trained() const { return !models[0].outcomes.empty(); }
};

// From the records and the config.yaml of a run. Error: as for read_records; a run without an evaluation, or without that file.
Outcome read_outcome(const std::string& run, uint64_t seed);

// A line on the positions that are scored, if evaluations leave the first ones of a window out (eval_from); else empty.
std::string scored_note(const Comparison& comparison);

// A row for each model. Before training the rows have no losses and times, and there is no chart. The chart has the validation loss, a
// mean over the seeds, against tokens and against time; where there is one, the accuracy; and the best loss against memory. The JSON
// names the build that writes it; the builds that trained a run are its `builds`.
Report report_of(const Comparison& comparison);

}  // namespace ricci::apps
