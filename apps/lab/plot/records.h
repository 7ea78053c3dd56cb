// The metrics of a run as columns of numbers.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "apps/lab/report/report.h"

namespace ricci::apps {

// The name of a run in tables and drawings: that of its folder.
std::string folder_name(const std::string& path);

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

struct RunRecords {
  std::string name;                                    // the folder's
  std::string path;                                    // leads to metrics.jsonl
  std::map<std::string, std::vector<double>> columns;  // a value for each record; kNotMeasured where it has none
  int64_t records = 0;
  int64_t not_finite = 0;  // values NaN or infinite in the file

  // A value for each record.
  std::vector<double> column(const std::string& key) const;
};

// The records of runs, given their folders, names or files. A last line without its end, which a run may be writing, is left out. Where
// several runs have the same name, their paths as given take its place. A run that has no record yet, or no file for them, is left out,
// and `skipped` gets a line that names it.
// Errors: no such run, no run has a record, a line that is no JSON object, a value that is no number: FILE:LINE: what is wrong.
std::vector<RunRecords> read_all_records(const std::vector<std::string>& paths, std::vector<std::string>* skipped = nullptr);
// The records of one run. Where it has none yet, `nothing` gets a line about that.
RunRecords read_run(const std::string& path_or_name, std::string& nothing);
// The same. Error: it has none yet.
RunRecords read_records(const std::string& path_or_name);

// The values of a key that are finite.
std::vector<double> finite(const RunRecords& run, const std::string& key);

// Error: the key is in no run; names the nearest one.
void check_key(const std::vector<RunRecords>& runs, const std::string& key);

// ---- The list of runs: the state of each, how far it is, and what differs between their configs (listing.cpp)
// The folders of runs in the folder of runs, by their names. Error: there is none.
std::vector<std::string> all_runs();

// A row for each run, the run with the newest record first. The state is `running` while a process trains the run, `finished` after all
// steps or when patience has run out, `new` before the first record, else `interrupted`. Runs are given by folder or name. A folder
// without a readable config.yaml is left out, and a note names it. Error: none of them is a run.
Report list_runs(const std::vector<std::string>& runs);

}  // namespace ricci::apps
