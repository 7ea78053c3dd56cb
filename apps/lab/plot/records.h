// The metrics of runs as columns of numbers, the list of runs, and curves.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "apps/lab/report/report.h"
#include "apps/run/config.h"
#include "apps/run/train_config.h"

namespace ricci::apps {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

struct RunRecords {
  std::string name;                                    // for its folder
  std::string path;                                    // to its metrics.jsonl
  std::map<std::string, std::vector<double>> columns;  // a value for each record, or kNotMeasured
  int64_t records = 0;

  std::vector<double> column(const std::string& key) const;  // kNotMeasured for a key that no record has
  std::vector<double> finite(const std::string& key) const;  // only the measured values
  double last(const std::string& key) const;                 // the last measured one, or kNotMeasured
};

// By the folder, name or file of a run; none if it has no file yet. The last line counts only with its end: a run may be writing it.
// Errors: no such run; FILE:LINE: not a JSON object, or a value that is not a number.
RunRecords read_records(const std::string& path_or_name);

// Seconds of training up to each record: tokens divided by their speed, or by the median speed if it was not measured.
std::vector<double> training_seconds(const RunRecords& run);
double median(std::vector<double> values);  // kNotMeasured without values

struct ListedRun : RunRecords {
  TrainConfig config = {};
  // `running` while a process trains it, `failed at step 3` after an error in that step, `finished` after all steps or when patience has
  // run out, `imported` if it has a model without a record, `new` before the first record, otherwise `interrupted`; empty without a valid
  // config.yaml.
  std::string state = {};
  std::map<std::string, std::string> keys = {};  // values of its config that at most half of the runs have
  double age = kNotMeasured;                     // seconds since the last record
};
// Reads runs by their folders or names, or all in the folder of runs. Notes name faults of some of them. Error: all have one.
std::vector<ListedRun> read_runs(std::vector<std::string> paths, std::vector<std::string>& notes);

// A row for each run: running ones first, then by the age of the last record.
ResultTable list_of(std::vector<ListedRun> runs);

struct CurveOptions {
  std::vector<std::string> keys = {"train_loss", "val_loss", "val_accuracy", "lr", "grad_norm", "tokens_per_s"};
  std::string x = "step";  // step, tokens or time
  double smooth = 0;       // steps, for the mean of noisy curves; 0: no mean
  bool log_y = false;
};

// The mean of all values up to each one. Weights fall by e every width / 2 steps: it varies like the mean of the last `width` values.
std::vector<double> smoothed(const std::vector<double>& values, const std::vector<double>& steps, double width);

// A colour for each run, or for training and validation of a single run; validation is dashed. Keys without values are left out.
// Errors: a key or x that no run has, with the nearest one; no value to draw.
Chart chart_of(std::vector<RunRecords> runs, const CurveOptions& options);

}  // namespace ricci::apps
