#include "apps/lab/plot/curves.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "apps/run/metrics.h"
#include "core/error.h"
#include "core/nearest.h"

namespace ricci::apps {
namespace {

struct Look {
  std::string key, panel, unit;
  bool noisy;
  int colour = -1;  // the colour index in a panel of multiple metrics
};
const Look kLooks[] = {{"train_loss", "loss", "nats per token", true}, {"val_loss", "loss", "nats per token", false},
    {"val_accuracy", "accuracy", "part predicted right", false}, {"lr", "learning rate", "", false},
    {"grad_norm", "gradient norm", "before clipping", true}, {"tokens_per_s", "speed", "tokens per second", true},
    {"peak_bytes", "memory", "most bytes of tensors at one time", false}, {"reserved_bytes", "memory of the pool", "bytes", false}};

Look look_of(const std::string& key) {
  for (const Look& look : kLooks)
    if (look.key == key) return look;
  return {key, key, "", true};
}

void check_key(const std::vector<RunRecords>& runs, const std::string& key) {
  std::vector<std::string> known(std::begin(kMetricsKeys), std::end(kMetricsKeys));
  for (const RunRecords& run : runs)
    for (const auto& [name, column] : run.columns) known.push_back(name);
  if (std::find(known.begin(), known.end(), key) != known.end()) return;
  const std::string nearest = nearest_note(key, known);
  fail("no run has the metric '{}'{}",
      {one_line(key), nearest.empty() ? fmt::format("; the metrics are {}", fmt::join(kMetricsKeys, ", ")) : nearest});
}

// The metric with this name, or all that match a pattern such as grad_norm.*, with blocks.2 before blocks.10. `shared`: in one panel.
std::vector<Look> looks_of(const std::vector<RunRecords>& runs, const std::string& key, bool shared) {
  std::set<std::pair<size_t, std::string>> found;
  for (const RunRecords& run : runs)
    for (const auto& [name, column] : run.columns)
      if (::fnmatch(key.c_str(), name.c_str(), 0) == 0) found.emplace(name.size(), name);
  if (key.find('*') == key.npos || found.empty()) {
    check_key(runs, key);
    return {look_of(key)};
  }
  std::vector<Look> looks;
  for (const auto& [length, name] : found) {
    looks.push_back(look_of(name));
    if (!shared || found.size() == 1) continue;
    looks.back().panel = key;
    looks.back().colour = static_cast<int>(looks.size()) - 1;
  }
  return looks;
}

// Adds the column of x values to the runs, and returns the axis title. `time` is training time, in the unit that suits the longest run.
std::string prepare_x(std::vector<RunRecords>& runs, const std::string& key) {
  check_key(runs, key);
  double longest = 0;
  for (RunRecords& run : runs) {
    if (key == "time") run.columns[key] = training_seconds(run);
    if (run.finite(key).empty()) fail("{}: no record contains {}", {run.path, key});
    longest = std::max(longest, run.last(key));
  }
  if (key != "time") return key;
  const auto [unit, length] = time_unit(longest);
  for (RunRecords& run : runs)
    for (double& time : run.columns[key]) time /= length;
  return fmt::format("time of training in {}s", unit);
}

// The runs of each name, in order of appearance.
std::vector<std::vector<RunRecords>> seeds_by_name(const std::vector<RunRecords>& runs) {
  std::vector<std::vector<RunRecords>> groups;
  for (const RunRecords& run : runs) {
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group[0].name == run.name; });
    if (found == groups.end()) groups.push_back({run});
    else found->push_back(run);
  }
  return groups;
}

// The mean of the points of a step, with an interval that contains all of these points.
Point mean_point(const std::vector<Point>& points) {
  const auto n = static_cast<double>(points.size());
  Point mean{0, 0};
  for (const Point& point : points) {
    mean.x += point.x / n;
    mean.y += point.y / n;
  }
  const auto [least, greatest] =
      std::minmax_element(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.y < b.y; });
  if (least->y == greatest->y) return {mean.x, least->y};
  mean.half_width = std::max(mean.y - least->y, greatest->y - mean.y);
  return mean;
}

// A point for each record of a run. For multiple runs, a point for each step: the mean over the runs that have a record of this step.
std::vector<Point> points_of(const std::vector<RunRecords>& runs, const std::string& key, double smooth, const CurveOptions& options) {
  std::map<double, std::vector<Point>> seeds;  // by step, or by record index
  for (const RunRecords& run : runs) {
    const std::vector<double> xs = run.column(options.x), steps = run.column("step");
    std::vector<double> ys = run.column(key);
    if (smooth > 0) ys = smoothed(ys, steps, smooth);
    for (size_t i = 0; i < ys.size(); ++i) {
      const double place = runs.size() == 1 ? static_cast<double>(i) : steps[i];
      if (std::isfinite(place) && drawable(xs[i]) && drawable(ys[i], options.log_y)) seeds[place].push_back({xs[i], ys[i]});
    }
  }
  std::vector<Point> points;
  for (const auto& [place, each] : seeds) points.push_back(mean_point(each));
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
  return points;
}

// The run name without the seed at its end.
std::string stem_of(const ListedRun& run) {
  const std::string end = "_" + std::to_string(run.config.seed);
  return run.name.ends_with(end) ? run.name.substr(0, run.name.size() - end.size()) : run.name;
}

// Gives runs with different seeds one name. Returns false if two runs have the same seed; such runs differ in other keys.
bool share_name(const std::vector<ListedRun*>& seeds) {
  std::set<uint64_t> numbers;
  for (const ListedRun* run : seeds) numbers.insert(run->config.seed);
  if (numbers.size() < seeds.size()) return false;
  const std::string name = fmt::format("{} ({} seeds)", stem_of(*seeds[0]), seeds.size());
  if (seeds.size() > 1)
    for (ListedRun* run : seeds) run->name = name;
  return true;
}

}  // namespace

std::vector<double> smoothed(const std::vector<double>& values, const std::vector<double>& steps, double width) {
  std::vector<double> means = values;
  double sum = 0, weights = 0, step = kNotMeasured;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    const double gap = std::max(1.0, steps[i] - step);  // records of the same step, or without steps, are one step apart
    const double kept = std::exp(-2 * gap / width);
    sum = kept * sum + values[i];
    weights = kept * weights + 1;
    means[i] = sum / weights;
    step = steps[i];
  }
  return means;
}

void name_by_setting(std::vector<ListedRun>& runs) {
  std::map<std::map<std::string, std::string>, std::vector<ListedRun*>> settings;
  for (ListedRun& run : runs) {
    std::map<std::string, std::string> keys = run.keys;
    keys.erase("seed");
    if (!keys.empty()) settings[keys].push_back(&run);
  }
  for (const auto& [keys, all] : settings) {
    if (share_name(all)) continue;
    std::map<std::string, std::vector<ListedRun*>> stems;
    for (ListedRun* run : all) stems[stem_of(*run)].push_back(run);
    for (const auto& [stem, seeds] : stems) share_name(seeds);
  }
}

Chart chart_of(std::vector<RunRecords> runs, const CurveOptions& options) {
  Chart chart{.x_name = prepare_x(runs, options.x), .log_y = options.log_y};
  const std::vector<std::vector<RunRecords>> groups = seeds_by_name(runs);
  const std::string note = groups.size() < runs.size() ? "mean and range of the seeds" : "";
  std::vector<Look> looks;
  for (const std::string& key : options.keys)
    for (const Look& look : looks_of(runs, key, groups.size() == 1)) looks.push_back(look);
  for (const Look& look : looks) {
    const std::string& key = look.key;
    const bool is_shared = look.colour >= 0;
    const std::string unit = look.unit + (look.unit.empty() || note.empty() ? "" : ", ") + note;
    const bool is_validation = key == "val_loss", smooths = options.smooth > 0 && look.noisy;
    for (size_t i = 0; i < groups.size(); ++i) {
      const int colour = groups.size() == 1 ? is_validation : static_cast<int>(i);
      Curve curve{.name = is_shared ? key : groups[i][0].name,
          .colour = is_shared ? look.colour : colour,
          .dashed = is_validation,
          .points = points_of(groups[i], key, 0, options)};
      if (curve.points.empty()) continue;
      if (chart.panels.empty() || chart.panels.back().title != look.panel) chart.panels.push_back({look.panel, unit});
      std::vector<Curve>& curves = chart.panels.back().curves;
      curves.push_back(curve);
      if (!smooths) continue;
      curves.back().faint = true;
      curve.points = points_of(groups[i], key, options.smooth, options);
      curves.push_back(curve);
    }
  }
  if (chart.panels.empty()) fail("{}: has no value to draw", {runs[0].path});
  return chart;
}

}  // namespace ricci::apps
