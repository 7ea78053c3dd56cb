#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "apps/lab/plot/curves.h"
#include "apps/lab/plot/records.h"
#include "apps/run/config.h"
#include "apps/run/run.h"
#include "apps/run/train_config.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "core/files/file.h"

namespace ricci::apps {
namespace {

struct ListedRun {
  RunRecords records;
  TrainConfig config;
  TextsByKey keys = {};  // without keys that follow from others; after keep_differing, the ones whose values differ from most runs
  std::string state = {};
  double step = kNotMeasured, age = kNotMeasured;  // age: seconds since the last record
  Point best{kNotMeasured, kNotMeasured};          // step and validation loss
};

double last_of(const RunRecords& run, const char* key) {
  const std::vector<double> values = finite(run, key);
  return values.empty() ? kNotMeasured : values.back();
}

bool is_finished(const ListedRun& run) {
  const TrainConfig& config = run.config;
  const bool patience_ended = config.patience > 0 && run.step - run.best.x >= static_cast<double>(config.patience);
  return is_file(run.records.path.substr(0, run.records.path.rfind('/')) + "/model.safetensors") &&
         (run.step >= static_cast<double>(config.steps) || patience_ended);
}

ListedRun read_listed(const std::string& path_or_name) {
  const std::string path = find_run(path_or_name);
  if (!is_folder(path)) fail("{}: no such run folder", {path});
  std::string nothing;
  ListedRun run{read_run(path, nothing), load_config<TrainConfig>(path + "/config.yaml")};
  run.keys = value_texts(fields_of(run.config));
  for (const char* const place : {"name", "runs"}) run.keys.erase(place);
  run.step = last_of(run.records, "step");
  run.best = best_evaluation(run.records);
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  run.age = std::max(now.count() - last_of(run.records, "time"), 0.0);  // NaN where there is no record
  if (!FolderLock::take(path)) run.state = "running";
  else if (run.records.records == 0) run.state = "new";
  else run.state = is_finished(run) ? "finished" : "interrupted";
  return run;
}

// Leaves out the value that most runs with the key have. If several values are the most frequent ones, all values stay.
void keep_differing(std::vector<ListedRun>& runs) {
  std::map<std::string, std::map<std::string, int>> counts;  // runs by key and value
  for (const ListedRun& run : runs)
    for (const auto& [key, value] : run.keys) ++counts[key][value];
  const auto is_usual = [&](const auto& each) {
    const auto& of_key = counts.at(each.first);
    const int count = of_key.at(each.second);
    return std::count_if(of_key.begin(), of_key.end(), [&](const auto& other) { return other.second >= count; }) == 1;
  };
  for (ListedRun& run : runs) std::erase_if(run.keys, is_usual);
}

// At most as many bytes.
std::string words_of(const TextsByKey& keys, size_t most) {
  std::string words;
  for (const auto& [key, value] : keys) words += (words.empty() ? "" : " ") + key + "=" + value;
  return words.size() > most ? words.substr(0, words.rfind(' ', most - 4)) + " ..." : words;
}

// "12 s", "5 min", "3 h", "2 days"
Json age_text(const ListedRun& run) {
  if (!std::isfinite(run.age)) return {};
  if (run.age < 100) return fmt::format("{:.0f} s", run.age);
  if (run.age < 6000) return fmt::format("{:.0f} min", run.age / 60);
  return run.age < 48 * 3600 ? fmt::format("{:.0f} h", run.age / 3600) : fmt::format("{:.0f} days", run.age / 86400);
}

Json number_or_nothing(double value) { return std::isfinite(value) ? Json(value) : Json(); }
Json whole_or_nothing(double value) { return std::isfinite(value) ? Json(std::llround(value)) : Json(); }

ResultTable table_of(const std::vector<ListedRun>& runs) {
  ResultTable table;
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), runs, value); };
  add({.heading = "run", .key = "name", .left = true}, [](const ListedRun& r) { return r.records.name; });
  add({.heading = "state", .key = "state", .left = true}, &ListedRun::state);
  add({.heading = "step", .key = "step", .format = ","}, [](const ListedRun& r) { return whole_or_nothing(r.step); });
  add({.heading = "of", .key = "steps", .format = ","}, [](const ListedRun& r) { return r.config.steps; });
  add({.heading = "best loss", .key = "best.val_loss", .format = "{:.4f}"}, [](const ListedRun& r) { return number_or_nothing(r.best.y); });
  add({.heading = "at step", .key = "best.step", .format = ","}, [](const ListedRun& r) { return whole_or_nothing(r.best.x); });
  add({.key = "train_loss"}, [](const ListedRun& r) { return number_or_nothing(last_of(r.records, "train_loss")); });
  add({.heading = "age", .left = true}, age_text);
  add({.key = "age_seconds"}, [](const ListedRun& r) { return number_or_nothing(r.age); });
  size_t longest = 0;  // with the name in front, the words have room in a line
  for (const ListedRun& run : runs) longest = std::max(longest, run.records.name.size());
  const size_t room = std::max<size_t>(78, longest + 20) - longest;
  add({.heading = "differs in", .left = true, .missing = ""}, [&](const ListedRun& r) { return words_of(r.keys, room); });
  add({.key = "differs"}, &ListedRun::keys);
  return table;
}

}  // namespace

std::vector<std::string> all_runs() {
  const std::string folder = folder_of_runs();
  if (!is_folder(folder)) fail("{}: there is no such folder of runs", {folder});
  std::vector<std::string> runs;
  for (const std::string& name : names_in(folder))
    if (is_file(folder + "/" + name + "/config.yaml")) runs.push_back((folder + "/").append(name));
  if (runs.empty()) fail("{}: there is no run in it", {folder});
  return runs;
}

Report list_runs(const std::vector<std::string>& paths) {
  Report report;
  std::vector<ListedRun> runs;
  for (const std::string& path : paths) {
    try {
      runs.push_back(read_listed(path));
    } catch (const Error& error) {
      if (paths.size() == 1) throw;
      report.notes.push_back("left out: " + std::string(error.what()));
    }
  }
  if (runs.empty()) fail("none of {} folders is a run", {paths.size()});
  const auto age = [](const ListedRun& run) { return std::isfinite(run.age) ? run.age : -1; };
  std::stable_sort(runs.begin(), runs.end(), [&](const ListedRun& a, const ListedRun& b) { return age(a) < age(b); });
  keep_differing(runs);
  report.title = runs.size() == 1 ? "1 run" : std::to_string(runs.size()) + " runs";
  report.table = table_of(runs);
  return report;
}

}  // namespace ricci::apps
