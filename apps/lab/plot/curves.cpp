#include "apps/lab/plot/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "apps/terminal/progress.h"
#include "core/error.h"

namespace ricci::apps {
namespace {

// The look of a metric.
struct Look {
  const char *key, *panel, *unit, *name;
  bool smooth, dashed;
};
constexpr Look kLooks[] = {{"train_loss", "loss", "nats per token", "training", true, false},
    {"val_loss", "loss", "nats per token", "validation", false, true},
    {"val_accuracy", "accuracy", "part predicted right", "", false, false}, {"lr", "learning rate", "", "", false, false},
    {"grad_norm", "gradient norm", "before clipping", "", true, false}, {"tokens_per_s", "speed", "tokens per second", "", true, false},
    {"peak_bytes", "memory", "bytes", "peak of tensors", false, false},
    {"reserved_bytes", "memory", "bytes", "reserved by the pool", false, true}};

Look look_of(const std::string& key) {
  for (const Look& look : kLooks)
    if (key == look.key) return look;
  return {key.c_str(), key.c_str(), "", "", true, false};
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return values.empty() ? kNotMeasured : *middle;
}

struct XAxis {
  std::string name;
  std::vector<std::vector<double>> values;  // a list for each run, with a value for each record
};

// The values of a key. For the time these are seconds of training, in the unit that suits the longest run.
XAxis x_axis(const std::vector<RunRecords>& runs, const std::string& key) {
  check_key(runs, key);
  XAxis x{key, {}};
  double longest = 0;
  for (const RunRecords& run : runs) {
    if (key != "time" && finite(run, key).empty()) fail("{}: no record has its {}", {run.path, key});
    x.values.push_back(key == "time" ? training_seconds(run) : run.column(key));
    for (const double value : x.values.back()) longest = std::max(longest, value);
  }
  if (key != "time") return x;
  constexpr struct {
    double end;
    const char* name;
    double seconds;
  } kUnits[] = {
      {180, "seconds", 1}, {3 * 3600, "minutes", 60}, {3 * 86400, "hours", 3600}, {std::numeric_limits<double>::infinity(), "days", 86400}};
  const auto& unit = *std::find_if(std::begin(kUnits), std::end(kUnits) - 1, [&](const auto& u) { return longest < u.end; });
  for (auto& values : x.values)
    for (double& value : values) value /= unit.seconds;
  x.name = std::string("time of training in ") + unit.name;
  return x;
}

// The points of a metric in the order of x, and the step of each; a file without steps has a record for each step.
Curve curve_of(const RunRecords& run, const std::string& key, const std::vector<double>& xs, Chart& chart) {
  const std::vector<double> ys = run.column(key), steps = run.column("step");
  std::vector<size_t> order(ys.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](size_t i) { return !std::isfinite(xs[i]) || !std::isfinite(ys[i]); });
  chart.left_out += static_cast<int64_t>(std::erase_if(
      order, [&](size_t i) { return !drawable(xs[i]) || !drawable(ys[i]) || (chart.log_x && xs[i] <= 0) || (chart.log_y && ys[i] <= 0); }));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return xs[a] < xs[b]; });
  Curve curve;
  for (const size_t i : order) {
    curve.points.push_back({xs[i], ys[i]});
    curve.steps.push_back(std::isfinite(steps[i]) ? steps[i] : static_cast<double>(i));
  }
  return curve;
}

Panel& panel_for(Chart& chart, const Look& look) {
  for (Panel& panel : chart.panels)
    if (panel.title == look.panel) return panel;
  return chart.panels.emplace_back(Panel{look.panel, look.unit});
}

// False where no run has a value.
bool add_metric(Chart& chart, const std::vector<RunRecords>& runs, const std::string& key, const XAxis& x) {
  const Look look = look_of(key);
  const bool has_name = look.name[0];
  bool drawn = false;
  for (size_t i = 0; i < runs.size(); ++i) {
    Curve curve = curve_of(runs[i], key, x.values[i], chart);
    if (curve.points.empty()) continue;
    Panel& panel = panel_for(chart, look);
    // The metrics of a single run have a colour each; otherwise each run has one.
    curve.colour = static_cast<int>(runs.size() > 1 ? i : panel.curves.size());
    curve.name = has_name ? look.name : key;
    if (runs.size() > 1) curve.name = runs[i].name + (has_name ? ", " + curve.name : "");
    curve.dashed = look.dashed;
    if (!look.smooth) curve.steps.clear();
    panel.curves.push_back(std::move(curve));
    drawn = true;
  }
  return drawn;
}

void average_curves(Chart& chart, double width) {
  for (Panel& panel : chart.panels) {
    const Axis y = y_axis_of(panel, chart);
    for (Curve& curve : panel.curves)
      if (!curve.steps.empty()) curve = averaged(std::move(curve), width, y);
  }
}

// The runs; then training and validation for every round of the palette, as each round has dashes of its own.
std::vector<LegendEntry> legend_of(const Chart& chart, const std::vector<RunRecords>& runs) {
  std::vector<LegendEntry> legend;
  if (runs.size() > 1)
    for (size_t i = 0; i < runs.size(); ++i) legend.push_back({runs[i].name, static_cast<int>(i), false});
  const bool has_both = std::any_of(chart.panels.begin(), chart.panels.end(), [](const Panel& panel) {
    const auto dashed = std::count_if(panel.curves.begin(), panel.curves.end(), [](const Curve& curve) { return curve.dashed; });
    return dashed > 0 && dashed < std::ssize(panel.curves);
  });
  if (!has_both) return legend;
  const bool alone = runs.size() == 1;
  const int rounds = std::min((static_cast<int>(runs.size()) + kColours - 1) / kColours, kRounds);
  for (int round = 0; round < rounds; ++round) {
    legend.push_back({"training", alone ? 0 : -1, false, round});
    legend.push_back({"validation", alone ? 1 : -1, true, round});
  }
  return legend;
}

// ---- The table
std::string whole(double value) { return std::abs(value) < 1e18 ? with_commas(std::llround(value)) : fmt::format("{:.3g}", value); }
std::string loss_text(double value) { return std::abs(value) < 1e9 ? fmt::format("{:.4f}", value) : fmt::format("{:.3g}", value); }

// ---- Averages
double gap_of(double earlier, double later) { return std::max(later - earlier, 1.0); }

// Values that the axis does not show, on the straight line between the nearest that it shows. It shows the first and the last.
void bridge(std::vector<Point>& points, const std::vector<double>& steps, const Axis& y) {
  size_t left = 0;
  double length = 0;  // in steps, from `left` on
  for (size_t right = 1; right < points.size(); ++right) {
    length += gap_of(steps[right - 1], steps[right]);
    if (!y.shows(points[right].y)) continue;
    double along = 0;
    for (size_t i = left + 1; i < right; ++i) {
      along += gap_of(steps[i - 1], steps[i]);
      points[i].y = points[left].y + along / length * (points[right].y - points[left].y);
    }
    left = right;
    length = 0;
  }
}

}  // namespace

std::vector<double> training_seconds(const RunRecords& run) {
  const std::vector<double> speeds = run.column("tokens_per_s");
  std::vector<double> measured = finite(run, "tokens_per_s");
  std::erase_if(measured, [](double speed) { return speed <= 0; });
  if (measured.empty() || !run.columns.contains("tokens")) {
    std::vector<double> times = run.column("time");
    const std::vector<double> known = finite(run, "time");
    if (known.empty()) fail("{}: no record has its time", {run.path});
    for (double& time : times) time -= known[0];
    return times;
  }
  std::vector<double> result = run.column("tokens");
  const double usual = median(measured);
  double seconds = 0, before = 0;
  for (size_t i = 0; i < result.size(); ++i) {
    const double tokens = result[i];
    if (!std::isfinite(tokens)) continue;
    seconds += std::max(tokens - before, 0.0) / (std::isfinite(speeds[i]) && speeds[i] > 0 ? speeds[i] : usual);
    before = tokens;
    result[i] = seconds;
  }
  return result;
}

Chart make_chart(const std::vector<RunRecords>& runs, const ChartOptions& options) {
  Chart chart;
  chart.title = options.title;
  chart.log_x = options.log_x;
  chart.log_y = options.log_y;
  chart.clipped = !options.full_range;
  const XAxis x = x_axis(runs, options.x);
  chart.x_name = x.name;
  std::vector<std::string> keys = options.keys;
  if (keys.empty()) keys = {"train_loss", "val_loss", "val_accuracy", "lr", "grad_norm", "tokens_per_s"};
  for (const RunRecords& run : runs) chart.left_out += run.not_finite;
  for (const std::string& key : keys) {
    if (!options.keys.empty()) check_key(runs, key);
    const bool drawn = add_metric(chart, runs, key, x);
    if (!options.keys.empty() && !drawn) fail("{}: no value of it can be drawn", {key});
  }
  if (chart.panels.empty()) fail("{}: none of its values can be drawn", {runs[0].path});
  if (chart.title.empty() && runs.size() == 1) chart.title = runs[0].name;
  if (chart.title.empty()) chart.title = std::to_string(runs.size()) + " runs";
  if (options.smooth > 0) average_curves(chart, options.smooth);
  chart.legend = legend_of(chart, runs);
  return chart;
}

Point best_evaluation(const RunRecords& run) {
  const std::vector<double> losses = run.column("val_loss"), steps = run.column("step");
  Point best{kNotMeasured, kNotMeasured};
  for (size_t i = 0; i < losses.size(); ++i)
    if (std::isfinite(losses[i]) && std::isfinite(steps[i]) && !(losses[i] >= best.y)) best = {steps[i], losses[i]};
  return best;
}

ResultTable summary(const std::vector<RunRecords>& runs) {
  ResultTable table;
  const auto add = [&](const char* heading, const auto& text, const auto& value) {
    table.add({.heading = heading, .missing = ""}, runs, [&](const RunRecords& run) {
      const double number = value(run);
      return std::isfinite(number) ? Json(text(number)) : Json();
    });
  };
  const auto last = [](const char* key) {
    return [key](const RunRecords& run) {
      const std::vector<double> values = finite(run, key);
      return values.empty() ? kNotMeasured : values.back();
    };
  };
  table.add({.heading = "run"}, runs, &RunRecords::name);
  add("steps", whole, last("step"));
  add("tokens", whole, last("tokens"));
  add("last training loss", loss_text, last("train_loss"));
  add("best validation loss", loss_text, [](const RunRecords& run) { return best_evaluation(run).y; });
  add("at step", whole, [](const RunRecords& run) { return best_evaluation(run).x; });
  add("tokens/s, median", whole, [](const RunRecords& run) { return median(finite(run, "tokens_per_s")); });
  return table;
}

std::vector<Point> smoothed(const std::vector<Point>& points, const std::vector<double>& steps, double width) {
  std::vector<Point> result = points;
  std::vector<double> x(points.size());  // steps from the first record on
  for (size_t i = 1; i < points.size(); ++i) x[i] = x[i - 1] + gap_of(steps[i - 1], steps[i]);
  const auto value = [&](size_t segment, double step) {  // on the straight line that ends at a record
    const double along = (step - x[segment - 1]) / (x[segment] - x[segment - 1]);
    return points[segment - 1].y + along * (points[segment].y - points[segment - 1].y);
  };
  size_t first = 1;  // the segment in which the window begins; it begins further left for no later record
  for (size_t i = 1; i + 1 < points.size(); ++i) {
    const double half = std::min({width / 2, x[i], x.back() - x[i]}), low = x[i] - half, high = x[i] + half;
    if (low == high) continue;  // steps so large that neighbours are one number
    while (x[first] <= low) ++first;
    double sum = 0;
    for (size_t segment = first; segment < points.size() && x[segment - 1] < high; ++segment) {
      const double begin = std::max(low, x[segment - 1]), end = std::min(high, x[segment]);
      sum += (end - begin) * (value(segment, begin) + value(segment, end)) / 2;
    }
    result[i].y = sum / (high - low);
  }
  return result;
}

Curve averaged(Curve measured, double width, const Axis& y) {
  Curve curve = std::move(measured);
  curve.raw = std::move(curve.points);
  const std::vector<Point>& raw = curve.raw;
  const auto is_shown = [&](const Point& point) { return y.shows(point.y); };
  const auto first = std::find_if(raw.begin(), raw.end(), is_shown);
  if (first == raw.end()) {
    curve.points = smoothed(raw, curve.steps, width);
    return curve;
  }
  const auto end = std::find_if(raw.rbegin(), raw.rend(), is_shown).base();
  curve.raw_before = static_cast<size_t>(first - raw.begin());
  std::vector<Point> points(first, end);
  const auto step = curve.steps.begin() + (first - raw.begin());
  const std::vector<double> steps(step, step + (end - first));
  bridge(points, steps, y);
  curve.points = smoothed(points, steps, width);
  return curve;
}

}  // namespace ricci::apps
