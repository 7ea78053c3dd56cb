#include "apps/lab/drawing/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <limits>

#include "apps/terminal/progress.h"

namespace ricci::apps {
namespace {

// ---- Ticks
int decade(double value) { return static_cast<int>(std::floor(std::log10(value) + 1e-9)); }

// The least of 1, 2, 5, 10 times a power of ten that is not below the value.
double round_up(double value) {
  const double power = std::pow(10.0, decade(value));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

// Labels of an axis agree in unit and decimals: `largest` is the largest magnitude on it, `step` the distance of ticks.
std::string label(double value, double largest, double step) {
  if (value == 0) return "0";
  if (largest < 1e-3 * (1 - 1e-9) || largest >= 1e15) {
    const int exponent = decade(std::abs(value));
    return fmt::format("{:.4g}e{}", value / std::pow(10.0, exponent), exponent);
  }
  struct Unit {
    double from, size;
    const char* name;
  };
  static constexpr Unit kUnits[] = {{1e12, 1e12, "T"}, {1e9, 1e9, "G"}, {1e6, 1e6, "M"}, {1e4, 1e3, "k"}, {0, 1, ""}};
  const Unit& unit = *std::find_if(std::begin(kUnits), std::end(kUnits), [&](const Unit& u) { return largest >= u.from; });
  const int decimals = std::max(0, -decade(step / unit.size));
  const double shown = value / unit.size;
  if (decimals == 0 && std::abs(shown) >= 1000) return with_commas(std::llround(shown)) + unit.name;
  return fmt::format("{:.{}f}{}", shown, decimals, unit.name);
}

std::vector<Tick> linear_ticks(const Axis& axis, int count) {
  double step = round_up((axis.high - axis.low) / count);
  // Between 5 and 2 times a power the distance may be too wide for two ticks.
  if (std::floor(axis.high / step + 1e-6) - std::ceil(axis.low / step - 1e-6) < 1) step *= 0.4;
  if (axis.whole) step = std::max(step, 1.0);
  std::vector<Tick> result;
  const double largest = std::max(std::abs(axis.low), std::abs(axis.high));
  for (double i = std::ceil(axis.low / step - 1e-6); i * step <= axis.high + 1e-6 * step; ++i)
    result.push_back({i * step, label(i * step, largest, step)});
  return result;
}

std::vector<Tick> log_ticks(const Axis& axis, int count) {
  const auto ticks_at = [&](std::initializer_list<int> factors, int every) {
    std::vector<Tick> result;
    for (int exponent = decade(axis.low) - 1; exponent <= decade(axis.high); ++exponent)
      for (const int factor : factors) {
        // From the decimal text, as powers of ten below 1 have no exact value.
        const double value = std::stod(fmt::format("{}e{}", factor, exponent));
        const bool inside = value >= axis.low * (1 - 1e-9) && value <= axis.high * (1 + 1e-9);
        if (inside && exponent % every == 0) result.push_back({value, label(value, value, std::pow(10.0, exponent))});
      }
    return result;
  };
  if (auto result = ticks_at({1, 2, 5}, 1); static_cast<int>(result.size()) <= count) return result;
  for (int every = 1;; ++every)
    if (auto result = ticks_at({1}, every); static_cast<int>(result.size()) <= count) return result;
}

// ---- Panels
constexpr size_t kFewest = 20;  // values
constexpr size_t kPart = 20;    // one value in 20 at each end does not belong to the middle
constexpr double kFar = 3;      // ranges of the middle

std::string short_value(double value) {
  const double size = std::abs(value);
  const std::string sign = value < 0 ? "-" : "";
  return size >= 1e3 && size < 1e15 ? sign + short_number(size) : fmt::format("{:.3g}", value);
}

void append(std::vector<double>& values, const Panel& panel, double Point::*coordinate) {
  for (const Curve& curve : panel.curves)
    for (const auto* points : {&curve.points, &curve.raw})
      for (const Point& point : *points) values.push_back(point.*coordinate);
}

}  // namespace

// Differences of logarithms: the quotient of the largest and the smallest value that can be drawn is no f64.
double Axis::share(double value) const {
  return log ? (std::log(value) - std::log(low)) / (std::log(high) - std::log(low)) : (value - low) / (high - low);
}

Axis axis_around(std::span<const double> values, bool log, bool with_margin) {
  if (values.empty()) return log ? Axis{1, 10, true} : Axis{0, 1, false};
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  double low = *least, high = *greatest;
  // Values that differ by rounding alone, such as averages of a constant, count as one.
  if (high - low <= 1e-9 * std::max(std::abs(low), std::abs(high))) low = high;
  if (log) {
    if (low == high) return {low / 2, high * 2, true};
    const double factor = with_margin ? std::exp(0.04 * (std::log(high) - std::log(low))) : 1;
    return {low / factor, high * factor, true};
  }
  if (low == high) {
    const double room = low == 0 ? 1 : std::abs(low) / 2;
    return {low - room, high + room, false};
  }
  const double margin = with_margin ? 0.04 * (high - low) : 0;
  const bool from_zero = low >= 0 && low < 0.4 * high;
  return {from_zero && with_margin ? 0 : low - margin, high + margin, false};
}

std::vector<Tick> ticks(const Axis& axis, int count) {
  bool fits = !axis.at.empty();
  for (size_t i = 1; i < axis.at.size(); ++i) fits &= axis.share(axis.at[i]) - axis.share(axis.at[i - 1]) > 0.6 / count;
  if (fits) {
    std::vector<Tick> given;
    for (const double value : axis.at) given.push_back({value, with_commas(std::llround(value))});
    return given;
  }
  return axis.log && axis.high / 10 >= axis.low ? log_ticks(axis, count) : linear_ticks(axis, count);
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

Axis y_axis_of(const Panel& panel, const Chart& chart) {
  std::vector<double> values;
  if (chart.clipped) values = without_outliers(panel, chart.log_y);
  else append(values, panel, &Point::y);
  if (values.empty()) return axis_around(values, chart.log_y, true);
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  const double low = *least, high = *greatest, range = high - low;
  for (const Curve& curve : panel.curves)
    for (size_t i = 0; i < curve.half_widths.size(); ++i)
      for (const double end : {curve.points[i].y - curve.half_widths[i], curve.points[i].y + curve.half_widths[i]})
        values.push_back(curve.points.size() == 1 ? end : std::clamp(end, low - range, high + range));
  return axis_around(values, chart.log_y, true);
}

Axis x_axis_of(const Chart& chart, const std::string& x_name) {
  std::vector<double> values;
  for (const Panel& panel : chart.panels)
    if (panel.x_name == x_name) append(values, panel, &Point::x);
  const auto is_point = [](const Curve& curve) { return measured(curve).size() == 1; };
  const bool scattered =
      chart.scattered || (values.size() > 1 && std::all_of(chart.panels.begin(), chart.panels.end(), [&](const Panel& panel) {
        return panel.x_name != x_name || std::all_of(panel.curves.begin(), panel.curves.end(), is_point);
      }));
  const bool from_zero = !chart.log_x && !scattered && !chart.whole_x;  // whole numbers count from 1 or from where they begin
  if (from_zero && !values.empty() && *std::min_element(values.begin(), values.end()) >= 0) values.push_back(0);
  Axis x = axis_around(values, chart.log_x, scattered);
  x.whole = chart.whole_x;
  if (!chart.given_x) return x;
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  x.at = values;
  return x;
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
