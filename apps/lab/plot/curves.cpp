#include "apps/lab/plot/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
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
    {"val_accuracy", "accuracy", "part predicted right", "", false, false}, {"lr", "learning rate", "", "", false, false},
    {"grad_norm", "gradient norm", "before clipping", "", true, false}, {"tokens_per_s", "speed", "tokens per second", "", true, false},
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
  std::string name;
  std::vector<std::vector<double>> values;  // of each run, one per record
};

bool is_known(double value) { return std::isfinite(value); }

// The key's values of each run; of time, those of training in the unit that suits the longest.
XAxis x_axis(const std::vector<RunRecords>& runs, const std::string& key) {
  check_key(runs, key);
  XAxis x{key, {}};
  double longest = 0;
  for (const RunRecords& run : runs) {
    const std::vector<double>* const values = column(run, key);
    if (key != "time" && (!values || std::none_of(values->begin(), values->end(), is_known)))
      fail("{}: no record tells its {}", {run.path, key});
    x.values.push_back(key == "time" ? training_seconds(run) : *values);
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

// The points of a curve in the order of x, and the step of each.
struct Series {
  std::vector<Point> points;
  std::vector<double> steps;
};

// A file without steps has one per record.
double step_of(const RunRecords& run, size_t i) {
  const std::vector<double>* const steps = column(run, "step");
  return steps && std::isfinite((*steps)[i]) ? (*steps)[i] : static_cast<double>(i);
}

Series series_of(const RunRecords& run, const std::string& key, const std::vector<double>& xs, Chart& chart) {
  const std::vector<double>* const ys = column(run, key);
  if (!ys) return {};
  std::vector<std::pair<Point, double>> found;
  for (size_t i = 0; i < ys->size(); ++i) {
    const double x = xs[i], y = (*ys)[i];
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    if (!drawable(x) || !drawable(y) || (chart.log_x && x <= 0) || (chart.log_y && y <= 0)) ++chart.left_out;
    else found.push_back({{x, y}, step_of(run, i)});
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first.x < b.first.x; });
  Series series;
  for (const auto& [point, step] : found) {
    series.points.push_back(point);
    series.steps.push_back(step);
  }
  return series;
}

Panel& panel_for(Chart& chart, const Look& look) {
  for (Panel& panel : chart.panels)
    if (panel.title == look.panel) return panel;
  return chart.panels.emplace_back(Panel{look.panel, look.unit});
}

// False where no run has a value.
bool add_metric(Chart& chart, const std::vector<RunRecords>& runs, const std::string& key, const XAxis& x) {
  const Look look = look_of(key);
  bool drawn = false;
  for (size_t i = 0; i < runs.size(); ++i) {
    auto [points, steps] = series_of(runs[i], key, x.values[i], chart);
    if (points.empty()) continue;
    Panel& panel = panel_for(chart, look);
    // One run alone has a colour per metric of a panel, several have one each.
    const int colour = static_cast<int>(runs.size() > 1 ? i : panel.curves.size());
    const std::string metric = look.name[0] ? look.name : key;
    Curve curve{.name = metric, .colour = colour, .dashed = look.dashed, .points = std::move(points)};
    if (runs.size() > 1) curve.name = runs[i].name + (look.name[0] ? ", " + metric : "");
    if (look.smooth) curve.steps = std::move(steps);
    panel.curves.push_back(std::move(curve));
    drawn = true;
  }
  return drawn;
}

void average_curves(Chart& chart, double constant) {
  for (Panel& panel : chart.panels) {
    const Axis y = y_axis_of(panel, chart);
    for (Curve& curve : panel.curves)
      if (!curve.steps.empty()) curve = averaged(std::move(curve), constant, y);
  }
}

// The runs; then training and validation, for every round of the palette, each of which has dashes of its own.
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
  const int rounds = std::min((static_cast<int>(runs.size()) + kColours - 1) / kColours, kRounds);
  for (int round = 0; round < rounds; ++round) {
    legend.push_back({"training", alone ? 0 : -1, false, round});
    legend.push_back({"validation", alone ? 1 : -1, true, round});
  }
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
std::string loss_text(double value) { return std::abs(value) < 1e9 ? fmt::format("{:.4f}", value) : fmt::format("{:.3g}", value); }

// The number of the record with the lowest validation loss.
std::optional<size_t> best_record(const RunRecords& run) {
  const auto *losses = column(run, "val_loss"), *steps = column(run, "step");
  std::optional<size_t> best;
  for (size_t i = 0; losses && steps && i < losses->size(); ++i) {
    const bool known = std::isfinite((*losses)[i]) && std::isfinite((*steps)[i]);
    if (known && (!best || (*losses)[i] < (*losses)[*best])) best = i;
  }
  return best;
}

}  // namespace

std::vector<double> training_seconds(const RunRecords& run) {
  const std::vector<double>*const tokens = column(run, "tokens"), *const speeds = column(run, "tokens_per_s"),
                                  *const times = column(run, "time");
  std::vector<double> result;
  std::vector<double> measured = finite(run, "tokens_per_s");
  std::erase_if(measured, [](double speed) { return speed <= 0; });
  if (tokens && !measured.empty()) {
    const double usual = median(measured)[0];
    double seconds = 0, before = 0;
    for (size_t i = 0; i < tokens->size(); ++i) {
      if (!std::isfinite((*tokens)[i])) {
        result.push_back(std::numeric_limits<double>::quiet_NaN());
        continue;
      }
      const double speed = (*speeds)[i];
      seconds += std::max((*tokens)[i] - before, 0.0) / (std::isfinite(speed) && speed > 0 ? speed : usual);
      before = (*tokens)[i];
      result.push_back(seconds);
    }
    return result;
  }
  const auto first = times ? std::find_if(times->begin(), times->end(), is_known) : std::vector<double>::const_iterator();
  if (!times || first == times->end()) fail("{}: no record tells its time", {run.path});
  for (const double time : *times) result.push_back(time - *first);
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

ResultTable summary(const std::vector<RunRecords>& runs) {
  ResultTable table;
  const auto add = [&](const char* heading, const auto& text) {
    table.add({.heading = heading, .missing = ""}, runs, [&](const RunRecords& run) { return Value(text(run)); });
  };
  const auto last = [](const char* key, const auto& text) {
    return [=](const RunRecords& run) {
      const std::vector<double> values = finite(run, key);
      return values.empty() ? std::string() : text(values.back());
    };
  };
  const auto best = [](const char* key, const auto& text) {
    return [=](const RunRecords& run) {
      const std::optional<size_t> record = best_record(run);
      return record ? text((*column(run, key))[*record]) : std::string();
    };
  };
  add("run", [](const RunRecords& run) { return run.name; });
  add("steps", last("step", whole));
  add("tokens", last("tokens", whole));
  add("last training loss", last("train_loss", loss_text));
  add("best validation loss", best("val_loss", loss_text));
  add("at step", best("step", whole));
  add("tokens/s, median", [](const RunRecords& run) {
    const std::vector<double> speed = median(finite(run, "tokens_per_s"));
    return speed.empty() ? std::string() : whole(speed[0]);
  });
  return table;
}

}  // namespace ricci::apps
