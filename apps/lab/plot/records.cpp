#include "apps/lab/plot/records.h"

#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <tuple>

#include "apps/run/config.h"
#include "apps/run/metrics.h"
#include "apps/run/places.h"
#include "apps/run/run_folder.h"
#include "apps/terminal/numbers.h"
#include "core/error.h"
#include "core/files/file.h"

namespace ricci::apps {
namespace {

namespace fs = std::filesystem;

void add(const Json& record, const std::string& place, RunRecords& run) {
  if (!record.is_object()) fail("{}: expected a JSON object", {place});
  const auto before = static_cast<size_t>(run.records);
  ++run.records;
  for (const auto& [key, value] : record.items()) {
    if (!value.is_number() && !value.is_null())
      fail("{}: {} is {}, expected a number", {place, one_line(key, 40), one_line(to_text(value), 40)});
    auto& column = run.columns[key];
    column.resize(before, kNotMeasured);
    column.push_back(value.is_null() ? kNotMeasured : value.get<double>());
  }
}

// ---- The list
struct BestEvaluation {
  double step = kNotMeasured, loss = kNotMeasured;
};
BestEvaluation best_evaluation(const RunRecords& run) {
  const std::vector<double> losses = run.column("val_loss"), steps = run.column("step");
  BestEvaluation best;
  for (size_t i = 0; i < losses.size(); ++i) {
    const bool is_measured = std::isfinite(losses[i]) && std::isfinite(steps[i]);
    const bool is_better = std::isnan(best.loss) || losses[i] < best.loss;
    if (is_measured && is_better) best = {steps[i], losses[i]};
  }
  return best;
}

// The matching runs in the folder of runs.
std::vector<std::string> runs_like(const std::string& pattern) {
  const std::string folder = folder_of_runs();
  std::vector<std::string> found;
  if (!is_there(folder)) return found;
  for (const std::string& name : names_in(folder)) {
    const std::string path = folder + "/" + name;
    const bool fits = ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0 || ::fnmatch(pattern.c_str(), path.c_str(), 0) == 0;
    if (fits && is_file(path + "/config.yaml")) found.push_back(path);
  }
  return found;
}

// Reads a run for the list. If its config.yaml has a fault, adds a note, and the run can still be plotted.
ListedRun read_listed(const std::string& path, std::vector<std::string>& notes) {
  ListedRun run{read_records(path)};
  const std::string folder = run.path.substr(0, run.path.rfind('/'));
  try {
    run.config = load_config<TrainConfig>(folder + "/config.yaml");
  } catch (const Error& error) {
    if (run.records == 0) throw;
    notes.push_back(error.what());
    return run;
  }
  const std::vector<Field> fields = fields_of(run.config);
  for (const Field& field : fields)
    if (field.is_read && field.key != "name" && field.key != "runs") run.keys[field.key] = value_text(fields, field.key);
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  run.age = std::max(now.count() - run.last("time"), 0.0);
  const bool has_model = is_file(folder + "/" + kModelFile);
  const double patience = static_cast<double>(run.config.patience), step = run.last("step");
  const bool has_ended = step >= static_cast<double>(run.config.steps) || (patience > 0 && step - best_evaluation(run).step >= patience);
  const std::optional<std::string> failure = find_text(folder + "/" + kFailureFile);
  if (!FolderLock::take(folder)) run.state = "running";
  else if (failure) run.state = "failed at " + failure->substr(0, failure->find('\n'));
  else if (run.records == 0) run.state = has_model ? "imported" : "new";
  else run.state = has_model && has_ended ? "finished" : "interrupted";
  return run;
}

// Removes values that more than half of the runs with the key share.
void keep_differing(std::vector<ListedRun>& runs) {
  std::map<std::string, std::vector<std::string>> values;  // by key
  for (const ListedRun& run : runs)
    for (const auto& [key, value] : run.keys) values[key].push_back(value);
  for (ListedRun& run : runs)
    std::erase_if(run.keys, [&](const auto& each) {
      const std::vector<std::string>& all = values.at(each.first);
      return 2 * std::count(all.begin(), all.end(), each.second) > std::ssize(all);
    });
}

// A value with the folders of its paths removed.
std::string without_folders(const std::string& value) {
  std::string text, part;
  for (const char letter : value) {
    part += letter;
    if (letter == '/') part.clear();
    if (letter != ' ' && letter != '[') continue;
    text += part;
    part.clear();
  }
  return text + part;
}

std::string words_of(const std::map<std::string, std::string>& keys) {
  std::string words;
  for (const auto& [key, value] : keys) words += (words.empty() ? "" : " ") + key + "=" + without_folders(value);
  return words;
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }
Json whole(double value) { return std::isfinite(value) ? Json(std::llround(value)) : Json(); }

Json time_text(double seconds) {
  const auto [unit, length] = time_unit(seconds);
  return std::isfinite(seconds) ? Json(counted(std::llround(seconds / length), unit)) : Json();
}

// The remaining time at the mean speed.
Json time_left(const ListedRun& run) {
  if (run.state != "running" || run.records == 0) return {};
  return time_text(training_seconds(run).back() * std::max(static_cast<double>(run.config.steps) / run.last("step") - 1, 0.0));
}

// The sort key: the run with the smallest key is listed first, and runs without a value last.
std::tuple<bool, double, std::string> rank_of(const ListedRun& run, SortBy order) {
  const auto known = [](double value) { return std::isfinite(value) ? value : 1e300; };
  if (order == SortBy::name) return {false, 0, run.name};
  if (order == SortBy::loss) return {false, known(best_evaluation(run).loss), ""};
  if (order == SortBy::step) return {false, known(-run.last("step")), ""};
  return {run.state != "running", known(run.age), ""};
}

ResultTable table_of(const std::vector<ListedRun>& runs) {
  if (runs.empty()) return {};
  size_t room = 78;  // columns to the right of the names
  for (const ListedRun& run : runs) room = std::min(room, 78 - std::min<size_t>(run.name.size(), 58));
  ResultTable table;
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), runs, value); };
  add({.heading = "run", .key = "name", .left = true}, &ListedRun::name);
  add({.heading = "state", .key = "state", .left = true}, &ListedRun::state);
  add({.heading = "step", .key = "step", .format = ","}, [](const ListedRun& r) { return whole(r.last("step")); });
  add({.heading = "of", .key = "steps", .format = ","},
      [](const ListedRun& r) { return r.state.empty() || r.state == "imported" ? Json() : Json(r.config.steps); });
  add({.heading = "best loss", .key = "best.val_loss", .format = "{:.4f}"},
      [](const ListedRun& r) { return number(best_evaluation(r).loss); });
  add({.heading = "at step", .key = "best.step", .format = ","}, [](const ListedRun& r) { return whole(best_evaluation(r).step); });
  add({.key = "train_loss"}, [](const ListedRun& r) { return number(r.last("train_loss")); });
  add({.heading = "age", .left = true}, [](const ListedRun& r) { return time_text(r.age); });
  add({.key = "age_seconds"}, [](const ListedRun& r) { return number(r.age); });
  const bool is_training = std::any_of(runs.begin(), runs.end(), [](const ListedRun& run) { return run.state == "running"; });
  if (is_training) add({.heading = "left", .left = true, .missing = ""}, time_left);
  add({.heading = "differs in", .left = true, .missing = ""}, [&](const ListedRun& r) { return one_line(words_of(r.keys), room); });
  add({.key = "differs"}, &ListedRun::keys);
  return table;
}

}  // namespace

std::vector<double> RunRecords::column(const std::string& key) const {
  const auto found = columns.find(key);
  return found == columns.end() ? std::vector<double>(static_cast<size_t>(records), kNotMeasured) : found->second;
}

std::vector<double> RunRecords::finite(const std::string& key) const {
  std::vector<double> values = column(key);
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  return values;
}

double RunRecords::last(const std::string& key) const {
  const std::vector<double> values = finite(key);
  return values.empty() ? kNotMeasured : values.back();
}

RunRecords read_records(const std::string& path_or_name) {
  const std::string path = find_run(path_or_name);
  if (!is_there(path)) fail("{}: no such run{}", {path, runs_note(path)});
  RunRecords run;
  run.path = is_folder(path) ? (fs::path(path) / "metrics.jsonl").lexically_normal().string() : path;
  run.name = folder_name(fs::absolute(run.path).parent_path());
  int64_t line_number = 0;
  each_line(find_text(run.path).value_or(""), [&](std::string_view line) {
    const std::string place = run.path + ":" + std::to_string(++line_number);
    add(parse_json(line, place), place, run);
  });
  for (auto& [key, column] : run.columns) column.resize(static_cast<size_t>(run.records), kNotMeasured);
  return run;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return values.empty() ? kNotMeasured : *middle;
}

std::pair<const char*, double> time_unit(double seconds) {
  constexpr std::pair<const char*, double> kUnits[] = {{"day", 86400}, {"hour", 3600}, {"minute", 60}};
  for (const auto& unit : kUnits)
    if (seconds >= 3 * unit.second) return unit;
  return {"second", 1};
}

std::vector<double> training_seconds(const RunRecords& run) {
  const std::vector<double> tokens = run.column("tokens"), speeds = run.column("tokens_per_s");
  std::vector<double> measured = run.finite("tokens_per_s"), seconds(tokens.size(), kNotMeasured);
  std::erase_if(measured, [](double speed) { return speed <= 0; });
  const double usual = median(measured);
  double sum = 0, before = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!std::isfinite(tokens[i])) continue;
    sum += std::max(tokens[i] - before, 0.0) / (speeds[i] > 0 ? speeds[i] : usual);
    before = tokens[i];
    seconds[i] = sum;
  }
  return seconds;
}

RunList read_runs(const std::vector<std::string>& names) {
  RunList list;
  std::vector<std::string> paths;
  if (names.empty()) paths = runs_like("*");
  for (const std::string& name : names) {
    const bool is_pattern = name.find_first_of("*?[") != name.npos && !is_there(find_run(name));
    const std::vector<std::string> found = is_pattern ? runs_like(name) : std::vector{name};
    if (found.empty()) list.notes.push_back(format_message("{}: no run in {} matches this pattern", {name, folder_of_runs()}));
    paths.insert(paths.end(), found.begin(), found.end());
  }
  for (const std::string& path : paths) {
    try {
      list.runs.push_back(read_listed(path, list.notes));
    } catch (const Error& error) {
      list.notes.push_back(error.what());
    }
  }
  if (list.runs.empty() && !list.notes.empty()) fail("{}", {list.notes.back()});
  return list;
}

Report report_of(RunList list, SortBy order, int64_t limit) {
  std::vector<ListedRun>& runs = list.runs;
  std::stable_sort(runs.begin(), runs.end(), [&](const ListedRun& a, const ListedRun& b) { return rank_of(a, order) < rank_of(b, order); });
  Report report{.title = counted(std::ssize(runs), "run"), .notes = list.notes};
  if (runs.empty()) report.title = format_message("no runs in {}; 'ricci train data=my.txt name=mine' makes one", {folder_of_runs()});
  if (limit > 0 && limit < std::ssize(runs)) {
    report.title = format_message("{} of {}", {limit, report.title});
    runs.resize(static_cast<size_t>(limit));
  }
  keep_differing(runs);
  report.table = table_of(runs);
  return report;
}

}  // namespace ricci::apps
