#include "apps/lab/plot/records.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "apps/run/config/nearest.h"
#include "apps/run/folder/places.h"
#include "apps/run/metrics/metrics.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/json/value.h"

namespace ricci::apps {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kMaxKeys = 100;  // every one is a column as long as the run
constexpr int kDeepest = 8;
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

// JSON has no NaN, yet some programs write it: NaN, Infinity and -Infinity outside of strings become texts.
std::string with_quoted_names(std::string_view line) {
  std::string result;
  bool in_string = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && (i == 0 || line[i - 1] != '\\')) in_string = !in_string;
    size_t length = 0;
    for (const std::string_view name : {"NaN", "-Infinity", "Infinity"})
      if (!in_string && !length && line.substr(i).starts_with(name)) length = name.size();
    if (!length) result += line[i];
    if (!length) continue;
    result.append("\"NaN\"");
    i += length - 1;
  }
  return result;
}

double number(const json& value, const std::string& key, const std::string& place, RunRecords& run) {
  if (value.is_null()) return kNothing;
  if (value.is_string() && value == "NaN") {
    ++run.not_finite;
    return kNothing;
  }
  if (!value.is_number()) fail("{}: {} is {}, expected a number", {place, one_line(key, 40), one_line(value.dump(), 40)});
  return value.get<double>();
}

void add(const json& record, const std::string& place, RunRecords& run) {
  const auto size = static_cast<size_t>(run.records++);
  for (const auto& [key, value] : record.items()) {
    if (run.columns.size() == kMaxKeys && !run.columns.contains(key))
      fail("{}: more than {} different metrics in one run", {place, kMaxKeys});
    auto& column = run.columns[key];
    column.resize(size, kNothing);
    column.push_back(number(value, key, place, run));
  }
}

// A name for the legend: that of the folder.
std::string name_of(const std::string& file) {
  std::error_code ignored;
  const fs::path folder = fs::weakly_canonical(file, ignored).parent_path();
  return folder.filename().empty() ? file : folder.filename().string();
}

// A run, or why it has no record.
struct Reading {
  RunRecords run;
  std::string nothing = {};
};

void read_lines(RunRecords& run) {
  const std::string text = read_text(run.path);
  int64_t line_number = 0;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    const std::string place = run.path + ":" + std::to_string(++line_number);
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (json_depth(line) > kDeepest)
      fail("{}: not a record, expected a JSON object of numbers, got one that is nested {} levels deep", {place, json_depth(line)});
    json record = json::parse(line, nullptr, false);
    if (record.is_discarded()) record = json::parse(with_quoted_names(line), nullptr, false);
    if (!record.is_object()) fail("{}: not a record, expected a JSON object", {place});
    add(record, place, run);
  }
}

Reading read(const std::string& path_or_name) {
  const std::string path = find_run(path_or_name);
  RunRecords run;
  std::error_code error;
  const auto status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) fail("{}: no such run", {path});
  if (error) fail("cannot read {}: {}", {path, error.message()});
  run.path = fs::is_directory(status) ? (fs::path(path) / "metrics.jsonl").lexically_normal().string() : path;
  if (fs::status(run.path, error).type() == fs::file_type::not_found)
    return {{}, format_message("{}: holds no metrics.jsonl, so no run has begun in it", {path})};
  run.name = name_of(run.path);
  read_lines(run);
  if (run.records == 0) return {{}, format_message("{}: holds no record yet", {run.path})};
  for (auto& [key, column] : run.columns) column.resize(static_cast<size_t>(run.records), kNothing);
  return {std::move(run)};
}

}  // namespace

RunRecords read_records(const std::string& path_or_name) {
  Reading reading = read(path_or_name);
  if (!reading.nothing.empty()) fail("{}", {reading.nothing});
  return std::move(reading.run);
}

std::vector<RunRecords> read_all_records(const std::vector<std::string>& paths, std::vector<std::string>* skipped) {
  std::vector<RunRecords> runs;
  std::vector<std::string> path_of_run, nothing;
  std::multiset<std::string> names;
  for (const std::string& path : paths) {
    Reading reading = read(path);
    if (!reading.nothing.empty()) {
      nothing.push_back(reading.nothing);
      continue;
    }
    names.insert(runs.emplace_back(std::move(reading.run)).name);
    path_of_run.push_back(path);
  }
  if (runs.empty() && nothing.size() == 1) fail("{}", {nothing[0]});
  if (runs.empty()) fail("none of {} runs has a record yet", {nothing.size()});
  for (size_t i = 0; i < runs.size(); ++i)
    if (names.count(runs[i].name) > 1) runs[i].name = path_of_run[i];
  if (skipped) *skipped = std::move(nothing);
  return runs;
}

void check_key(const std::vector<RunRecords>& runs, const std::string& key) {
  std::vector<std::string> known(metrics_keys().begin(), metrics_keys().end());
  for (const RunRecords& run : runs)
    for (const auto& [name, column] : run.columns) known.push_back(name);
  if (std::find(known.begin(), known.end(), key) == known.end())
    fail("no run has '{}' among its metrics{}", {one_line(key), nearest_note(key, known)});
}

}  // namespace ricci::apps
