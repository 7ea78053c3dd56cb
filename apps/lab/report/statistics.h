// Statistics of a few measured values: means over seeds or windows, quartiles of times, the best of a list.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "core/error.h"

namespace ricci::apps {

// The 97.5% quantile of Student's t distribution; less than 0.2% off. Error: less than one degree of freedom.
inline double student_t(size_t degrees_of_freedom) {
  constexpr double kFew[] = {12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157, 2.228139};
  if (degrees_of_freedom == 0) fail("student_t: 0 degrees of freedom, expected at least 1");
  if (degrees_of_freedom <= std::size(kFew)) return kFew[degrees_of_freedom - 1];
  // The normal distribution's quantile, and the first terms of what is added to it for a finite number (Abramowitz and Stegun, 26.7.5).
  constexpr double z = 1.959964;
  const auto n = static_cast<double>(degrees_of_freedom);
  return z + (std::pow(z, 3) + z) / (4 * n) + (5 * std::pow(z, 5) + 16 * std::pow(z, 3) + 3 * z) / (96 * n * n);
}

// The deviation divides by n - 1. The mean of all possible values is within `half_width` of the mean with a probability of 95%, if
// single values are normally distributed (Student's t): it is half of the width of the 95% interval. A single value has a
// deviation and half_width of 0.
struct MeanSpread {
  double mean = 0, deviation = 0, half_width = 0;
};
inline MeanSpread mean_spread(const std::vector<double>& values) {
  MeanSpread result;
  const auto n = static_cast<double>(values.size());
  for (const double value : values) result.mean += value / n;
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.deviation = std::sqrt(squares / (n - 1));
  result.half_width = student_t(values.size() - 1) * result.deviation / std::sqrt(n);
  return result;
}

// The first `count` elements in the order of `before`.
template <class T, class Before> std::vector<T> best_of(std::vector<T> all, int64_t count, const Before& before) {
  const auto end = all.begin() + std::min<int64_t>(count, std::ssize(all));
  std::partial_sort(all.begin(), end, all.end(), before);
  all.erase(end, all.end());
  return all;
}

// The quartiles of some values, the least and the greatest of them.
struct Spread {
  double min = 0, lower_quartile = 0, median = 0, upper_quartile = 0, max = 0;
};
// Error: no values.
inline Spread spread_of(std::vector<double> values) {
  if (values.empty()) fail("bench: no step was timed");
  std::sort(values.begin(), values.end());
  // Between two neighbours in proportion, as NumPy's quantile.
  const auto quantile = [&](double q) {
    const double rank = q * static_cast<double>(values.size() - 1);
    const size_t first = static_cast<size_t>(rank), second = std::min(first + 1, values.size() - 1);
    return values[first] + (rank - static_cast<double>(first)) * (values[second] - values[first]);
  };
  return {values.front(), quantile(0.25), quantile(0.5), quantile(0.75), values.back()};
}

}  // namespace ricci::apps
