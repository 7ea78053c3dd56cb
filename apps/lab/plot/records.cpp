#include "apps/lab/plot/records.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "apps/run/metrics.h"
#include "apps/run/run.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/json/value.h"
#include "core/nearest.h"

namespace ricci::apps {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kMaxKeys = 100;  // every one is a column as long as the run
constexpr int kDeepest = 8;

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

double number(const json& value, const std::string& key, const std::string& place, RunRecords& run) {
  if (value.is_number()) return value.get<double>();
  const bool is_nan = value == "NaN";
  if (!value.is_null() && !is_nan) fail("{}: {} is {}, expected a number", {place, one_line(key, 40), one_line(value.dump(), 40)});
  run.not_finite += is_nan;
  return kNotMeasured;
}

void add(const json& record, const std::string& place, RunRecords& run) {
  const auto size = static_cast<size_t>(run.records++);
  for (const auto& [key, value] : record.items()) {
    if (run.columns.size() == kMaxKeys && !run.columns.contains(key))
      fail("{}: more than {} different metrics in one run", {place, kMaxKeys});
    auto& column = run.columns[key];
    column.resize(size, kNotMeasured);
    column.push_back(number(value, key, place, run));
  }
}

// A name for the legend: the name of the folder.
std::string run_name_of(const std::string& file) {
  std::error_code unresolved;
  fs::path resolved = fs::weakly_canonical(file, unresolved);
  if (unresolved) resolved = fs::absolute(file).lexically_normal();
  const fs::path folder = resolved.parent_path();
  return folder.filename().empty() ? file : folder.filename().string();
}

void read_lines(RunRecords& run) {
  int64_t line_number = 0;
  each_line(read_text(run.path), [&](std::string_view line) {
    const std::string place = run.path + ":" + std::to_string(++line_number);
    if (json_depth(line) > kDeepest)
      fail("{}: not a record, expected a JSON object of numbers, got one that is nested {} levels deep", {place, json_depth(line)});
    json record = json::parse(line, nullptr, false);
    if (record.is_discarded()) record = json::parse(with_quoted_names(line), nullptr, false);
    if (!record.is_object()) fail("{}: not a record, expected a JSON object", {place});
    add(record, place, run);
  });
  for (auto& [key, column] : run.columns) column.resize(static_cast<size_t>(run.records), kNotMeasured);
}

}  // namespace

RunRecords read_run(const std::string& path_or_name, std::string& nothing) {
  const std::string path = find_run(path_or_name);
  RunRecords run;
  std::error_code error;
  const auto status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) fail("{}: no such run{}", {path, runs_note(path)});
  if (error) fail("cannot read {}: {}", {path, error.message()});
  run.path = fs::is_directory(status) ? (fs::path(path) / "metrics.jsonl").lexically_normal().string() : path;
  run.name = run_name_of(run.path);
  if (fs::status(run.path, error).type() == fs::file_type::not_found) {
    nothing = path + ": holds no metrics.jsonl, so no run has begun in it";
  } else {
    read_lines(run);
    if (run.records == 0) nothing = run.path + ": holds no record yet";
  }
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
