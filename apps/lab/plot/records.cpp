#include "apps/lab/plot/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <utility>

#include "apps/run/metrics.h"
#include "apps/run/places.h"
#include "apps/run/run_folder.h"
#include "apps/terminal/numbers.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/nearest.h"

namespace ricci::apps {
namespace {

namespace fs = std::filesystem;

void add(const Json& record, const std::string& place, RunRecords& run) {
  if (!record.is_object()) fail("{}: expected a JSON object", {place});
  const auto size = static_cast<size_t>(run.records++);
  for (const auto& [key, value] : record.items()) {
    if (!value.is_number() && !value.is_null())
      fail("{}: {} is {}, expected a number", {place, one_line(key, 40), one_line(to_text(value), 40)});
    auto& column = run.columns[key];
    column.resize(size, kNotMeasured);
    column.push_back(value.is_null() ? kNotMeasured : value.get<double>());
  }
}

// ---- The list
Point best_evaluation(const RunRecords& run) {
  const std::vector<double> losses = run.column("val_loss"), steps = run.column("step");
  Point best{kNotMeasured, kNotMeasured};
  for (size_t i = 0; i < losses.size(); ++i)
    if (std::isfinite(losses[i]) && std::isfinite(steps[i]) && !(losses[i] >= best.y)) best = {steps[i], losses[i]};
  return best;
}

// A note names the fault of a config.yaml: such runs can still be plotted.
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
  for (const Field& field : fields_of(run.config))
    if (field.is_read && field.key != "name" && field.key != "runs") run.keys[field.key] = value_text(field);
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  run.age = std::max(now.count() - run.last("time"), 0.0);
  const bool has_model = is_file(folder + "/" + kModelFile);
  const double patience = static_cast<double>(run.config.patience), step = run.last("step");
  const bool has_ended = step >= static_cast<double>(run.config.steps) || (patience > 0 && step - best_evaluation(run).x >= patience);
  const std::optional<std::string> failure = find_text(folder + "/" + kFailureFile);
  if (!FolderLock::take(folder)) run.state = "running";
  else if (failure) run.state = "failed at " + failure->substr(0, failure->find('\n'));
  else if (run.records == 0) run.state = has_model ? "imported" : "new";
  else run.state = has_model && has_ended ? "finished" : "interrupted";
  return run;
}

// Keeps the values that at most half of the runs with this key have.
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

// Only the last part of a path is shown.
std::string words_of(const std::map<std::string, std::string>& keys) {
  std::string words;
  for (const auto& [key, value] : keys) {
    words += (words.empty() ? "" : " ") + key + "=";
    for (const char letter : value) {
      words += letter;
      if (letter == '/') words.erase(words.find_last_of("=[ ") + 1);
    }
  }
  return words;
}

// The largest unit that fits into the time three times.
std::pair<const char*, double> time_unit(double seconds) {
  constexpr std::pair<const char*, double> kUnits[] = {{"day", 86400}, {"hour", 3600}, {"minute", 60}, {"second", 1}};
  return *std::find_if(kUnits, kUnits + 3, [&](const auto& unit) { return seconds >= 3 * unit.second; });
}

Json time_text(double seconds) {
  const auto [unit, length] = time_unit(seconds);
  return std::isfinite(seconds) ? Json(counted(std::llround(seconds / length), unit)) : Json();
}

// The time for the remaining steps, at the mean speed.
Json time_left(const ListedRun& run) {
  if (run.state != "running" || run.records == 0) return {};
  return time_text(training_seconds(run).back() * std::max(static_cast<double>(run.config.steps) / run.last("step") - 1, 0.0));
}

// ---- Curves
struct Look {
  std::string key, panel, unit;
  bool noisy;
};
const Look kLooks[] = {{"train_loss", "loss", "nats per token", true}, {"val_loss", "loss", "nats per token", false},
    {"val_accuracy", "accuracy", "part predicted right", false}, {"lr", "learning rate", "", false},
    {"grad_norm", "gradient norm", "before clipping", true}, {"tokens_per_s", "speed", "tokens per second", true},
    {"peak_bytes", "memory", "most bytes of tensors at one time", false}, {"reserved_bytes", "memory of the pool", "bytes", false}};

void check_key(const std::vector<RunRecords>& runs, const std::string& key) {
  std::vector<std::string> known(std::begin(kMetricsKeys), std::end(kMetricsKeys));
  for (const RunRecords& run : runs)
    for (const auto& [name, column] : run.columns) known.push_back(name);
  if (std::find(known.begin(), known.end(), key) != known.end()) return;
  const std::string nearest = nearest_note(key, known);
  fail("no run has the metric '{}'{}",
      {one_line(key), nearest.empty() ? fmt::format("; the metrics are {}", fmt::join(kMetricsKeys, ", ")) : nearest});
}

// Adds the column of x to the runs: `time` is the time of training, in the unit that suits the longest run. Returns the title of the axis.
std::string prepare_x(std::vector<RunRecords>& runs, const std::string& key) {
  check_key(runs, key);
  double longest = 0;
  for (RunRecords& run : runs) {
    if (key == "time") run.columns[key] = training_seconds(run);
    if (run.finite(key).empty()) fail("{}: no record has {}", {run.path, key});
    longest = std::max(longest, run.last(key));
  }
  if (key != "time") return key;
  const auto [unit, length] = time_unit(longest);
  for (RunRecords& run : runs)
    for (double& time : run.columns[key]) time /= length;
  return fmt::format("time of training in {}s", unit);
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

std::vector<ListedRun> read_runs(std::vector<std::string> paths, std::vector<std::string>& notes) {
  if (paths.empty()) {
    const std::string folder = folder_of_runs();
    for (const std::string& name : names_in(folder))
      if (is_file(folder + "/" + name + "/config.yaml")) paths.push_back((folder + "/").append(name));
    if (paths.empty()) fail("{}: no runs in this folder", {folder});
  }
  std::vector<ListedRun> runs;
  for (const std::string& path : paths) {
    try {
      runs.push_back(read_listed(path, notes));
    } catch (const Error& error) {
      notes.push_back(error.what());
    }
  }
  if (runs.empty()) fail("{}", {notes.back()});
  keep_differing(runs);
  return runs;
}

ResultTable list_of(std::vector<ListedRun> runs) {
  const auto place = [](const ListedRun& run) { return std::pair(run.state != "running", run.records ? run.age : 1e300); };
  std::stable_sort(runs.begin(), runs.end(), [&](const ListedRun& a, const ListedRun& b) { return place(a) < place(b); });
  size_t room = 78;  // columns next to the names
  for (const ListedRun& run : runs) room = std::min(room, 78 - std::min<size_t>(run.name.size(), 58));
  const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  const auto whole = [](double value) { return std::isfinite(value) ? Json(std::llround(value)) : Json(); };
  ResultTable table;
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), runs, value); };
  add({.heading = "run", .key = "name", .left = true}, &ListedRun::name);
  add({.heading = "state", .key = "state", .left = true}, &ListedRun::state);
  add({.heading = "step", .key = "step", .format = ","}, [&](const ListedRun& r) { return whole(r.last("step")); });
  add({.heading = "of", .key = "steps", .format = ","},
      [](const ListedRun& r) { return r.state.empty() || r.state == "imported" ? Json() : Json(r.config.steps); });
  add({.heading = "best loss", .key = "best.val_loss", .format = "{:.4f}"},
      [&](const ListedRun& r) { return number(best_evaluation(r).y); });
  add({.heading = "at step", .key = "best.step", .format = ","}, [&](const ListedRun& r) { return whole(best_evaluation(r).x); });
  add({.key = "train_loss"}, [&](const ListedRun& r) { return number(r.last("train_loss")); });
  add({.heading = "age", .left = true}, [](const ListedRun& r) { return time_text(r.age); });
  add({.key = "age_seconds"}, [&](const ListedRun& r) { return number(r.age); });
  if (runs[0].state == "running") add({.heading = "left", .left = true, .missing = ""}, time_left);
  add({.heading = "differs in", .left = true, .missing = ""}, [&](const ListedRun& r) { return one_line(words_of(r.keys), room); });
  add({.key = "differs"}, &ListedRun::keys);
  return table;
}

std::vector<double> smoothed(const std::vector<double>& values, const std::vector<double>& steps, double width) {
  std::vector<double> means = values;
  double sum = 0, weights = 0, step = kNotMeasured;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    const double gap = std::max(1.0, steps[i] - step);  // records of the same step, or without steps, count as one step apart
    const double kept = std::exp(-2 * gap / width);
    sum = kept * sum + values[i];
    weights = kept * weights + 1;
    means[i] = sum / weights;
    step = steps[i];
  }
  return means;
}

Chart chart_of(std::vector<RunRecords> runs, const CurveOptions& options) {
  Chart chart{.x_name = prepare_x(runs, options.x), .log_y = options.log_y};
  const auto add_curve = [&](const Look& look, size_t run, const std::vector<double>& ys, bool is_faint) {
    const bool is_validation = look.key == "val_loss";
    const int colour = runs.size() == 1 ? is_validation : static_cast<int>(run);
    Curve curve{.name = runs[run].name, .colour = colour, .dashed = is_validation, .faint = is_faint};
    const std::vector<double> xs = runs[run].column(options.x);
    for (size_t i = 0; i < ys.size(); ++i)
      if (drawable(xs[i]) && drawable(ys[i], chart.log_y)) curve.points.push_back({xs[i], ys[i]});
    if (curve.points.empty()) return;
    std::stable_sort(curve.points.begin(), curve.points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
    if (chart.panels.empty() || chart.panels.back().title != look.panel) chart.panels.push_back({look.panel, look.unit});
    chart.panels.back().curves.push_back(curve);
  };
  for (const std::string& key : options.keys) {
    check_key(runs, key);
    const auto* const known = std::find_if(std::begin(kLooks), std::end(kLooks), [&](const Look& each) { return each.key == key; });
    const Look look = known == std::end(kLooks) ? Look{key, key, "", true} : *known;
    const bool smooths = options.smooth > 0 && look.noisy;
    for (size_t i = 0; i < runs.size(); ++i) {
      const std::vector<double> values = runs[i].column(key);
      add_curve(look, i, values, smooths);
      if (smooths) add_curve(look, i, smoothed(values, runs[i].column("step"), options.smooth), false);
    }
  }
  if (chart.panels.empty()) fail("{}: no value to draw", {runs[0].path});
  return chart;
}

}  // namespace ricci::apps
