#include "apps/lab/drawing/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "apps/terminal/progress.h"

namespace ricci::apps {
namespace {

int decade(double value) { return static_cast<int>(std::floor(std::log10(value) + 1e-9)); }

// The least of 1, 2, 5, 10 times a power of ten that is not below the value.
double round_up(double value) {
  const double power = std::pow(10.0, decade(value));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

std::string scientific(double value) {
  if (value == 0) return "0";
  const int exponent = decade(std::abs(value));
  return fmt::format("{:.4g}e{}", value / std::pow(10.0, exponent), exponent);
}

// Labels of an axis agree in unit and decimals: `largest` is the largest magnitude on it, `step` the distance of ticks.
std::string label(double value, double largest, double step) {
  if (largest < 1e-3 * (1 - 1e-9) || largest >= 1e15) return scientific(value);
  static constexpr std::pair<double, const char*> kUnits[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}};
  const auto unit = largest < 1e4 ? std::end(kUnits) - 1
                                  : std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto& u) { return largest >= u.first; });
  const int decimals = std::max(0, -decade(step / unit->first));
  const double shown = value / unit->first;
  if (value == 0) return "0";
  if (decimals == 0 && std::abs(shown) >= 1000) return with_commas(std::llround(shown)) + unit->second;
  return fmt::format("{:.{}f}{}", shown, decimals, unit->second);
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

}  // namespace

// Differences of logarithms: the quotient of the largest and the smallest value that can be drawn is no f64.
double Axis::share(double value) const {
  return log ? (std::log(value) - std::log(low)) / (std::log(high) - std::log(low)) : (value - low) / (high - low);
}

Axis axis_around(std::span<const double> values, bool log, bool with_margin) {
  if (values.empty()) return log ? Axis{1, 10, true} : Axis{0, 1, false};
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  double low = *least, high = *greatest;
  // What differs by rounding alone, such as averages of a constant, is one value.
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
  return axis.log && axis.high / 10 >= axis.low ? log_ticks(axis, count) : linear_ticks(axis, count);
}

}  // namespace ricci::apps
