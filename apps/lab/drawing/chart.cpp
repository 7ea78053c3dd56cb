#include "apps/lab/drawing/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "apps/terminal/progress.h"

namespace ricci::apps {
namespace {

constexpr size_t kFewest = 20;  // values
constexpr size_t kPart = 20;    // one value in 20 at each end is not of the middle
constexpr double kFar = 3;      // ranges of the middle

std::string short_value(double value) {
  const double size = std::abs(value);
  const std::string sign = value < 0 ? "-" : "";
  return size >= 1e3 && size < 1e15 ? sign + short_number(size) : fmt::format("{:.3g}", value);
}

Axis axis_of(const Panel& panel, const Chart& chart, bool vertical) {
  std::vector<double> values;
  for (const Curve& curve : panel.curves)
    for (const auto* points : {&curve.points, &curve.raw})
      for (const Point& point : *points) values.push_back(vertical ? point.y : point.x);
  if (vertical && chart.clipped) values = without_outliers(panel, chart.log_y);
  const bool from_zero = !vertical && !chart.log_x && !chart.scattered;
  if (from_zero && !values.empty() && *std::min_element(values.begin(), values.end()) >= 0) values.push_back(0);
  return axis_around(values, vertical ? chart.log_y : chart.log_x, vertical || chart.scattered);
}

}  // namespace

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

void add_curves(Chart& chart, const std::string& name, const std::vector<std::vector<Point>>& points, bool marked) {
  const int colour = static_cast<int>(chart.legend.size());
  chart.legend.push_back({name, colour});
  for (size_t i = 0; i < points.size(); ++i)
    if (!points[i].empty()) chart.panels.at(i).curves.push_back({.name = name, .colour = colour, .points = points[i], .marked = marked});
}

std::vector<double> without_outliers(const Panel& panel, bool log) {
  const auto scaled = [&](const Point& point) { return log ? std::log(point.y) : point.y; };
  std::vector<double> sorted, shown;
  for (const Curve& curve : panel.curves)
    std::transform(measured(curve).begin(), measured(curve).end(), std::back_inserter(sorted), scaled);
  std::sort(sorted.begin(), sorted.end());
  const size_t few = sorted.size() / kPart;
  const double low = few ? sorted[few] : 0, high = few ? sorted[sorted.size() - 1 - few] : 0, range = high - low;
  const bool leaves_out = sorted.size() >= kFewest && range > 1e-9 * std::max(std::abs(low), std::abs(high));
  const auto is_near = [&](const Point& point) {
    return !leaves_out || (scaled(point) >= low - kFar * range && scaled(point) <= high + kFar * range);
  };
  for (const Curve& curve : panel.curves) {
    const std::vector<Point>& points = measured(curve);
    const auto first_near = std::find_if(points.begin(), points.end(), is_near);
    const auto begin = first_near - points.begin() > 1 ? points.begin() : first_near;
    for (auto point = begin; point != points.end(); ++point)
      if (point < first_near || is_near(*point)) shown.push_back(point->y);
  }
  return shown;
}

Axis y_axis_of(const Panel& panel, const Chart& chart) { return axis_of(panel, chart, true); }

Axis common_x_axis(const Chart& chart) {
  Panel all;
  for (const Panel& panel : chart.panels)
    if (panel.x_name.empty()) all.curves.insert(all.curves.end(), panel.curves.begin(), panel.curves.end());
  Axis x = axis_of(all, chart, false);
  x.whole = chart.whole_x;
  return x;
}

Axis x_axis_of(const Panel& panel, const Chart& chart, const Axis& common) {
  return panel.x_name.empty() ? common : axis_of(panel, chart, false);
}

Outside outside_of(const Panel& panel, const Axis& y) {
  Outside outside;
  outside.lowest = std::numeric_limits<double>::infinity();
  outside.highest = -outside.lowest;
  for (const Curve& curve : panel.curves)
    for (const Point& point : measured(curve)) {
      if (y.shows(point.y)) continue;
      ++(y.share(point.y) > 1 ? outside.above : outside.below);
      outside.lowest = std::min(outside.lowest, point.y);
      outside.highest = std::max(outside.highest, point.y);
    }
  return outside;
}

std::string words_of(const Outside& outside, bool is_short) {
  std::string words;
  if (outside.above) words = with_commas(outside.above) + " above" + (is_short ? "" : ", up to " + short_value(outside.highest));
  if (outside.below)
    words +=
        (words.empty() ? "" : "; ") + with_commas(outside.below) + " below" + (is_short ? "" : ", down to " + short_value(outside.lowest));
  return words;
}

}  // namespace ricci::apps
