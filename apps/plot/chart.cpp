#include "apps/plot/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "apps/terminal/progress.h"
#include "core/error.h"

namespace ricci::apps {
namespace {

// How a metric is shown. Metrics of one panel stand next to each other in a list of keys.
struct Look {
  const char *key, *panel, *unit, *name;
  bool smooth, dashed;
};
constexpr Look kLooks[] = {{"train_loss", "loss", "nats per token", "training", true, false},
                           {"val_loss", "loss", "nats per token", "validation", false, true},
                           {"lr", "learning rate", "", "", false, false},
                           {"grad_norm", "gradient norm", "before clipping", "", true, false},
                           {"tokens_per_s", "speed", "tokens per second", "", true, false},
                           {"peak_bytes", "peak memory", "bytes", "", false, false}};

Look look_of(const std::string& key) {
  for (const Look& look : kLooks)
    if (key == look.key) return look;
  return {key.c_str(), key.c_str(), "", "", true, false};
}

const std::vector<double>* column(const RunRecords& run, const std::string& key) {
  const auto found = run.columns.find(key);
  return found == run.columns.end() ? nullptr : &found->second;
}

struct XAxis {
  std::string key, name;
  double scale;  // of a value as shown
};

// Time is counted from the first record of each run, in the unit that suits the longest.
double first_of(const RunRecords& run, const std::string& key) {
  for (const double value : *column(run, key))
    if (std::isfinite(value)) return value;
  fail("{}: no record tells its {}", {run.path, key});
}

XAxis x_axis(const std::vector<RunRecords>& runs, const std::string& key) {
  check_key(runs, key);
  double longest = 0;
  for (const RunRecords& run : runs) {
    if (!column(run, key)) fail("{}: no record tells its {}", {run.path, key});
    const double first = first_of(run, key);
    for (const double value : *column(run, key)) longest = std::max(longest, value - first);
  }
  if (key != "time") return {key, key, 1};
  if (longest < 180) return {key, "time in seconds", 1};
  if (longest < 3 * 3600) return {key, "time in minutes", 60};
  if (longest < 3 * 86400) return {key, "time in hours", 3600};
  return {key, "time in days", 86400};
}

std::vector<Point> points_of(const RunRecords& run, const std::string& key, const XAxis& x, Chart& chart) {
  std::vector<Point> points;
  const std::vector<double>* const ys = column(run, key);
  if (!ys) return points;
  const std::vector<double>& xs = *column(run, x.key);
  const double first = x.key == "time" ? first_of(run, x.key) : 0;
  for (size_t i = 0; i < ys->size(); ++i) {
    const double at = (xs[i] - first) / x.scale, value = (*ys)[i];
    if (!std::isfinite(at) || !std::isfinite(value)) continue;
    if (!drawable(at) || !drawable(value) || (chart.log_x && at <= 0) || (chart.log_y && value <= 0))
      ++chart.left_out;
    else
      points.push_back({at, value});
  }
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
  return points;
}

Panel& panel_for(Chart& chart, const Look& look) {
  for (Panel& panel : chart.panels)
    if (panel.title == look.panel) return panel;
  return chart.panels.emplace_back(Panel{look.panel, look.unit, {}});
}

// False where no run has a value.
bool add_curves(Chart& chart, const std::vector<RunRecords>& runs, const std::string& key, const XAxis& x, double smooth) {
  const Look look = look_of(key);
  bool drawn = false;
  for (size_t i = 0; i < runs.size(); ++i) {
    std::vector<Point> points = points_of(runs[i], key, x, chart);
    if (points.empty()) continue;
    Panel& panel = panel_for(chart, look);
    // One run alone has a colour per metric of a panel, several have one each.
    const int colour = static_cast<int>(runs.size() > 1 ? i : panel.curves.size());
    std::string name = runs.size() > 1 ? runs[i].name : look.name[0] ? look.name : key;
    if (runs.size() > 1 && look.name[0]) name += std::string(", ") + look.name;
    const bool smooths = smooth > 0 && look.smooth;
    Curve curve{name, colour, look.dashed, smooths ? smoothed(points, smooth) : points, {}};
    if (smooths) curve.raw = std::move(points);
    panel.curves.push_back(std::move(curve));
    drawn = true;
  }
  return drawn;
}

std::vector<LegendEntry> legend_of(const Chart& chart, const std::vector<RunRecords>& runs) {
  std::vector<LegendEntry> legend;
  if (runs.size() > 1)
    for (size_t i = 0; i < runs.size(); ++i) legend.push_back({runs[i].name, static_cast<int>(i), false});
  const bool dashes = std::any_of(chart.panels.begin(), chart.panels.end(), [](const Panel& panel) {
    return std::any_of(panel.curves.begin(), panel.curves.end(), [](const Curve& c) { return c.dashed; }) &&
           std::any_of(panel.curves.begin(), panel.curves.end(), [](const Curve& c) { return !c.dashed; });
  });
  if (!dashes) return legend;
  const bool alone = runs.size() == 1;
  legend.push_back({"training", alone ? 0 : -1, false});
  legend.push_back({"validation", alone ? 1 : -1, true});
  return legend;
}

// ---- The table
std::vector<double> finite(const RunRecords& run, const char* key) {
  std::vector<double> result;
  const auto is_finite = [](double value) { return std::isfinite(value); };
  if (const auto* all = column(run, key)) std::copy_if(all->begin(), all->end(), std::back_inserter(result), is_finite);
  return result;
}

std::vector<double> median(std::vector<double> values) {
  if (values.empty()) return values;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return {*middle};
}

std::string whole(double value) { return std::abs(value) < 1e18 ? with_commas(std::llround(value)) : fmt::format("{:.3g}", value); }
std::string last_whole(const std::vector<double>& values) { return values.empty() ? "" : whole(values.back()); }
std::string loss_text(double value) { return std::abs(value) < 1e9 ? fmt::format("{:.4f}", value) : fmt::format("{:.3g}", value); }

// The least validation loss and its step, as texts.
std::pair<std::string, std::string> best_loss(const RunRecords& run) {
  const auto *losses = column(run, "val_loss"), *steps = column(run, "step");
  if (!losses || !steps) return {};
  size_t best = losses->size();
  for (size_t i = 0; i < losses->size(); ++i) {
    const bool known = std::isfinite((*losses)[i]) && std::isfinite((*steps)[i]);
    if (known && (best == losses->size() || (*losses)[i] < (*losses)[best])) best = i;
  }
  if (best == losses->size()) return {};
  return {loss_text((*losses)[best]), whole((*steps)[best])};
}

}  // namespace

std::vector<Point> smoothed(const std::vector<Point>& points, double weight) {
  std::vector<Point> result;
  result.reserve(points.size());
  double sum = 0, weights = 0;
  for (const auto& [x, y] : points) {
    sum = weight * sum + y;
    weights = weight * weights + 1;
    result.push_back({x, sum / weights});
  }
  return result;
}

std::vector<Point> thinned(const std::vector<Point>& points, int columns) {
  if (points.size() <= 4 * static_cast<size_t>(columns)) return points;
  const double low = points.front().x, width = (points.back().x - low) / columns;
  const auto column_of = [&](const Point& p) { return width > 0 ? std::floor((p.x - low) / width) : 0; };
  const auto less = [](const Point& a, const Point& b) { return a.y < b.y; };
  std::vector<Point> result;
  for (auto begin = points.begin(); begin != points.end();) {
    const auto end = std::find_if(begin, points.end(), [&](const Point& p) { return column_of(p) > column_of(*begin); });
    auto [least, greatest] = std::minmax_element(begin, end, less);
    decltype(least) chosen[] = {begin, std::min(least, greatest), std::max(least, greatest), end - 1};
    const auto* const last = std::unique(std::begin(chosen), std::end(chosen));
    for (const auto* each = std::begin(chosen); each != last; ++each) result.push_back(**each);
    begin = end;
  }
  return result;
}

Chart make_chart(const std::vector<RunRecords>& runs, const ChartOptions& options) {
  Chart chart;
  chart.title = options.title;
  chart.log_x = options.log_x;
  chart.log_y = options.log_y;
  const XAxis x = x_axis(runs, options.x);
  chart.x_name = x.name;
  std::vector<std::string> keys = options.keys;
  if (keys.empty()) keys = {"train_loss", "val_loss", "lr", "grad_norm", "tokens_per_s"};
  for (const RunRecords& run : runs) chart.left_out += run.not_finite;
  for (const std::string& key : keys) {
    if (!options.keys.empty()) check_key(runs, key);
    const bool drawn = add_curves(chart, runs, key, x, options.smooth);
    if (!options.keys.empty() && !drawn) fail("{}: no value of it can be drawn", {key});
  }
  if (chart.panels.empty()) fail("{}: none of its values can be drawn", {runs[0].path});
  if (chart.title.empty() && runs.size() == 1) chart.title = runs[0].name;
  if (chart.title.empty()) chart.title = std::to_string(runs.size()) + " runs";
  chart.legend = legend_of(chart, runs);
  return chart;
}

std::vector<std::vector<std::string>> summary(const std::vector<RunRecords>& runs) {
  std::vector<std::vector<std::string>> table = {
      {"run", "steps", "tokens", "last training loss", "best validation loss", "at step", "tokens/s, median"}};
  for (const RunRecords& run : runs) {
    const std::vector<double> losses = finite(run, "train_loss");
    const auto [best, step] = best_loss(run);
    table.push_back({run.name, last_whole(finite(run, "step")), last_whole(finite(run, "tokens")), losses.empty() ? "" : loss_text(losses.back()),
                     best, step, last_whole(median(finite(run, "tokens_per_s")))});
  }
  return table;
}

}  // namespace ricci::apps
