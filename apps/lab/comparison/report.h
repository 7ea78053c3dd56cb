// What the models of a comparison came to: as a table, as JSON, as a chart.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/lab/comparison/matching.h"
#include "apps/lab/plot/chart.h"
#include "apps/terminal/table.h"

namespace ricci::apps {

// One evaluation of the validation text, while training.
struct Measurement {
  double tokens = 0, seconds = 0, nats = 0;  // seconds: of training alone
  std::optional<double> accuracy = {};       // of classifiers and the sorter
};

// One training of one model.
struct Outcome {
  std::string run;  // its folder
  uint64_t seed = 0;
  std::vector<Measurement> measurements;
  double least_nats = 0;                 // of all evaluations
  std::optional<double> accuracy = {};   // of the evaluation with the least nats
  double seconds = 0;                    // of training alone, evaluations and pauses left out
  double tokens_per_second = 0;          // the median of what was recorded
  double peak_bytes = 0;                 // most bytes of tensors
  std::vector<std::string> builds = {};  // that trained it, as its config.yaml tells (apps/run/config/builds.h)
};

struct Compared {
  Matched model;
  std::vector<Outcome> outcomes;  // one per seed
};

struct Comparison {
  std::string title, command;
  Equal equal = Equal::parameters;
  std::vector<Compared> models;
};

// From the records and the config.yaml of a run. Error: those of read_records; a run without an evaluation, or without that file.
Outcome read_outcome(const std::string& run, uint64_t seed);

// Which tokens the losses are of, where evaluations leave the first positions of a window out (eval_from); else empty.
std::string scored_note(const Comparison& comparison);

// Before training there is nothing of losses and times in any of them.
std::vector<Cells> cells_of(const Comparison& comparison);
std::string table_of(const Comparison& comparison);  // with the note
// `build` is that of the program that writes it; those that trained a run are its `builds`.
std::string json_of(const Comparison& comparison);

// The validation loss, a mean over the seeds, against tokens and against time; where there is one, the accuracy; and the best loss against
// memory.
Chart chart_of(const Comparison& comparison);

}  // namespace ricci::apps
