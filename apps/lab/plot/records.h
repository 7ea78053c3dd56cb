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

// The largest unit that fits into the time three times, and its seconds: {"hour", 3600}.
std::pair<const char*, double> time_unit(double seconds);

// ---- The list
struct ListedRun : RunRecords {
  TrainConfig config = {};
  // `running` while a process trains it, `failed at step 3` after an error in that step, `finished` after all steps or when patience has
  // run out, `imported` if it has a model without a record, `new` before the first record, otherwise `interrupted`; empty without a valid
  // config.yaml.
  std::string state = {};
  std::map<std::string, std::string> keys = {};  // that its config reads, with their values
  double age = kNotMeasured;                     // seconds since the last record
};
struct RunList {
  std::vector<ListedRun> runs = {};
  std::vector<std::string> notes = {};  // faults of some of the runs
};
// Reads runs by their folders, names or patterns of names, such as 'cmp3*'; without any, all in the folder of runs. Error: none of the runs
// can be read.
RunList read_runs(const std::vector<std::string>& names);

// age: running runs first, then those with the newest record. loss: the best validation loss. step: the most steps first.
enum class SortBy : uint8_t { age, loss, name, step };
constexpr auto choices(SortBy) { return std::array{"age", "loss", "name", "step"}; }

// A row for each run, at most `limit` unless it is 0, with the values of its config that at most half of the listed runs have.
Report report_of(RunList list, SortBy order = SortBy::age, int64_t limit = 0);

}  // namespace ricci::apps
