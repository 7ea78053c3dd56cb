// ricci-compare, in the order to read: contestants.h reads the models of a comparison, matching.h makes them equal in size, child.h
// trains each, and report.h tells what they came to, with statistics.h over the seeds.
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
  std::optional<double> accuracy = {};       // of classifiers and the sorter
};

// One training of one model.
struct Outcome {
  std::string run;  // its folder
  uint64_t seed = 0;
  std::vector<Measurement> measurements;
  double min_nats = 0;                   // of all evaluations
  std::optional<double> accuracy = {};   // of the evaluation with the lowest nats
  double seconds = 0;                    // of training alone, evaluations and pauses left out
  double tokens_per_second = 0;          // the median of what was recorded
  double peak_bytes = 0;                 // the largest number of bytes of tensors at one time
  std::vector<std::string> builds = {};  // that trained it, as its config.yaml tells (apps/run/config/config.h)
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

// A row for each model. Before training there is nothing of losses and times in any of them, and no chart. The chart has the validation
// loss, a mean over the seeds, against tokens and against time; where there is one, the accuracy; and the best loss against memory. The
// JSON tells the build that writes it; those that trained a run are its `builds`.
Report report_of(const Comparison& comparison);

}  // namespace ricci::apps
