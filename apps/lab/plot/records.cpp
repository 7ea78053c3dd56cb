#include "apps/lab/plot/records.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "apps/run/metrics.h"
#include "apps/run/run.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/json.h"

namespace ricci::apps {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxKeys = 100;  // every one is a column as long as the run
constexpr JsonLimits kRecord{.depth = 8};

// JSON has no NaN, yet some programs write it: NaN, Infinity and -Infinity outside of strings become texts.
std::string with_quoted_names(std::string_view line) {
  std::string result;
  bool in_string = false;
  for (size_t i = 0; i < line.size();) {
    if (line[i] == '"') in_string = !in_string;
    size_t length = in_string && line[i] == '\\' ? 2 : 1;  // an escaped quote ends no string
    std::string_view written = line.substr(i, length);
    for (const std::string_view name : {"NaN", "-Infinity", "Infinity"})
      if (!in_string && line.substr(i).starts_with(name)) {
        length = name.size();
        written = "\"NaN\"";
      }
    result += written;
    i += length;
  }
  return result;
}

double number(const Json& value, const std::string& key, const std::string& place, RunRecords& run) {
  if (value.is_number()) return value.get<double>();
  const bool is_nan = value == "NaN";
  if (!value.is_null() && !is_nan) fail("{}: {} is {}, expected a number", {place, one_line(key, 40), one_line(to_text(value), 40)});
  run.not_finite += is_nan;
  return kNotMeasured;
}

void add(const Json& record, const std::string& place, RunRecords& run) {
  const auto size = static_cast<size_t>(run.records++);
  for (const auto& [key, value] : record.items()) {
    if (run.columns.size() == kMaxKeys && !run.columns.contains(key))
      fail("{}: more than {} different metrics in one run", {place, kMaxKeys});
    auto& column = run.columns[key];
    column.resize(size, kNotMeasured);
    column.push_back(number(value, key, place, run));
  }
}

void read_lines(const std::string& text, RunRecords& run) {
  int64_t line_number = 0;
  each_line(text, [&](std::string_view line) {
    const std::string place = run.path + ":" + std::to_string(++line_number);
    const Json record = parse_json(with_quoted_names(line), place, kRecord);
    if (!record.is_object()) fail("{}: not a record, expected a JSON object", {place});
    add(record, place, run);
  });
  for (auto& [key, column] : run.columns) column.resize(static_cast<size_t>(run.records), kNotMeasured);
}

}  // namespace

std::string folder_name(const std::string& path) {
  std::error_code ignored;
  const std::string name = fs::weakly_canonical(path, ignored).filename().string();
  return name.empty() ? path : name;
}

RunRecords read_run(const std::string& path_or_name, std::string& nothing) {
  const std::string path = find_run(path_or_name);
  if (!is_there(path)) fail("{}: no such run{}", {path, runs_note(path)});
  RunRecords run;
  run.path = is_folder(path) ? (fs::path(path) / "metrics.jsonl").lexically_normal().string() : path;
  run.name = folder_name(fs::absolute(run.path).parent_path());
  const std::optional<std::string> text = find_text(run.path);
  if (text) read_lines(*text, run);
  if (!text) nothing = path + ": holds no metrics.jsonl, so no run has begun in it";
  else if (run.records == 0) nothing = run.path + ": holds no record yet";
  return run;
}

std::vector<double> finite(const RunRecords& run, const std::string& key) {
  std::vector<double> values = run.column(key);
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  return values;
}

std::vector<double> RunRecords::column(const std::string& key) const {
  const auto found = columns.find(key);
  return found == columns.end() ? std::vector<double>(static_cast<size_t>(records), kNotMeasured) : found->second;
}

RunRecords read_records(const std::string& path_or_name) { return std::move(read_all_records({path_or_name})[0]); }

std::vector<RunRecords> read_all_records(const std::vector<std::string>& paths, std::vector<std::string>* skipped) {
  std::vector<RunRecords> runs;
  std::vector<std::string> given, nothing;  // given: the path of each run
  std::multiset<std::string> names;
  for (const std::string& path : paths) {
    std::string reason;
    RunRecords run = read_run(path, reason);
    if (!reason.empty()) {
      nothing.push_back(std::move(reason));
      continue;
    }
    names.insert(run.name);
    given.push_back(path);
    runs.push_back(std::move(run));
  }
  if (runs.empty() && nothing.size() == 1) fail("{}", {nothing[0]});
  if (runs.empty()) fail("none of {} runs has a record yet", {nothing.size()});
  for (size_t i = 0; i < runs.size(); ++i)
    if (names.count(runs[i].name) > 1) runs[i].name = given[i];
  if (skipped) *skipped = std::move(nothing);
  return runs;
}

void check_key(const std::vector<RunRecords>& runs, const std::string& key) {
  std::vector<std::string> known(std::begin(kMetricsKeys), std::end(kMetricsKeys));
  for (const RunRecords& run : runs)
    for (const auto& [name, column] : run.columns) known.push_back(name);
  if (std::find(known.begin(), known.end(), key) != known.end()) return;
  const std::string nearest = nearest_note(key, known);
  std::string list;
  for (const char* const each : kMetricsKeys) list += std::string(list.empty() ? "; there are " : ", ") + each;
  fail("no run has '{}' among its metrics{}", {one_line(key), nearest.empty() ? list : nearest});
}

}  // namespace ricci::apps
