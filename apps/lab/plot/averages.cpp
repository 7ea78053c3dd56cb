#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/lab/plot/curves.h"

namespace ricci::apps {
namespace {

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

// Between two records the curve is a straight line, and every point of it weighs exp(-its distance / constant). With the gap in units of
// the constant: the sums so far keep the share exp(-gap), the line adds 1 - exp(-gap), which its two ends divide between them.
std::vector<Point> smoothed(const std::vector<Point>& points, const std::vector<double>& steps, double constant) {
  std::vector<Point> result = points;
  double sum = 0, weight = 0;
  for (size_t i = 1; i < points.size(); ++i) {
    const double gap = gap_of(steps[i - 1], steps[i]) / constant;
    const double kept = std::exp(-gap), added = -std::expm1(-gap), of_earlier = added / gap - kept;
    sum = kept * sum + of_earlier * points[i - 1].y + (added - of_earlier) * points[i].y;
    weight = kept * weight + added;
    result[i].y = sum / weight;
  }
  return result;
}

Curve averaged(Curve measured, double constant, const Axis& y) {
  Curve curve = std::move(measured);
  curve.raw = std::move(curve.points);
  const std::vector<Point>& raw = curve.raw;
  const auto is_shown = [&](const Point& point) { return y.shows(point.y); };
  const auto first = std::find_if(raw.begin(), raw.end(), is_shown);
  if (first == raw.end()) {
    curve.points = smoothed(raw, curve.steps, constant);
    return curve;
  }
  const auto end = std::find_if(raw.rbegin(), raw.rend(), is_shown).base();
  curve.raw_before = static_cast<size_t>(first - raw.begin());
  std::vector<Point> points(first, end);
  const auto step = curve.steps.begin() + (first - raw.begin());
  const std::vector<double> steps(step, step + (end - first));
  bridge(points, steps, y);
  curve.points = smoothed(points, steps, constant);
  return curve;
}

}  // namespace ricci::apps
