// The metrics of runs as columns of numbers, and the list of runs.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "apps/lab/report/report.h"
#include "apps/run/train_config.h"
#include "core/choice.h"

namespace ricci::apps {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

struct RunRecords {
  std::string name;                                    // the folder name
  std::string path;                                    // path of its metrics.jsonl
  std::map<std::string, std::vector<double>> columns;  // a value for each record, or kNotMeasured
  int64_t records = 0;

  std::vector<double> column(const std::string& key) const;  // kNotMeasured for an unknown key
  std::vector<double> finite(const std::string& key) const;  // only the measured values
  double last(const std::string& key) const;                 // the last measured value, or kNotMeasured
};

// Reads the records of a run, given by its folder, name or file; empty if the file is missing. Skips an incomplete last line. Errors: the
// run does not exist; a line (FILE:LINE) is not a JSON object, or a value is not a number.
RunRecords read_records(const std::string& path_or_name);

// Training seconds up to each record: tokens divided by their speed, or by the median speed if it was not measured.
std::vector<double> training_seconds(const RunRecords& run);
double median(std::vector<double> values);  // kNotMeasured without values

// The largest unit of time that fits at least three times into the seconds, and its length in seconds, such as {"hour", 3600}.
std::pair<const char*, double> time_unit(double seconds);

// ---- The list
struct ListedRun : RunRecords {
  TrainConfig config = {};
  // `running` while a process trains the run, `failed at step 3` after an error in that step, `finished` after all steps or by patience,
  // `imported` for a model without records, `new` before the first record, else `interrupted`; empty without a valid config.yaml.
  std::string state = {};
  std::map<std::string, std::string> keys = {};  // the config's keys and their values
  double age = kNotMeasured;                     // seconds since the last record
};
struct RunList {
  std::vector<ListedRun> runs = {};
  std::vector<std::string> notes = {};  // faults of runs
};
// Reads runs, given by folders, names or patterns of names such as 'cmp3*'; by default all runs in the folder of runs. Error: no run can be
// read.
RunList read_runs(const std::vector<std::string>& names);

// age: running runs first, then by newest record. loss: the best validation loss first. step: the most steps first.
enum class SortBy : uint8_t { age, loss, name, step };
constexpr auto choices(SortBy) { return std::array{"age", "loss", "name", "step"}; }

// A row for each run, at most `limit` unless it is 0, with config values that at most half of the listed runs share.
Report report_of(RunList list, SortBy order = SortBy::age, int64_t limit = 0);

}  // namespace ricci::apps
