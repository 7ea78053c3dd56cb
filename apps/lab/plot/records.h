// The metrics of a run as columns of numbers.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ricci::apps {

struct RunRecords {
  std::string name;                                    // of its folder
  std::string path;                                    // of metrics.jsonl
  std::map<std::string, std::vector<double>> columns;  // as many values each as there are records; NaN: not measured
  int64_t records = 0;
  int64_t not_finite = 0;  // values NaN or infinite in the file
};

// The records of a run, given its folder, its name or the file. A last line without its end, which a run may be writing, is left out.
// Errors: no metrics, no record, a line that is no JSON object, a value that is no number: FILE:LINE: what is wrong.
RunRecords read_records(const std::string& path_or_name);

// All of them; names that several runs share give way to the paths as given. A run that has no record yet, or no file for them, is left
// out, and `skipped` gets a line that names it. Errors: those of read_records; no run has a record.
std::vector<RunRecords> read_all_records(const std::vector<std::string>& paths, std::vector<std::string>* skipped = nullptr);

// Error: the key is in no run; names the nearest one.
void check_key(const std::vector<RunRecords>& runs, const std::string& key);

}  // namespace ricci::apps
