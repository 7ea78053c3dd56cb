// The axes of a panel. A single value far from all others would flatten its curves: the y axis leaves such values out.
#pragma once
#include <string>
#include <vector>

#include "apps/lab/plot/chart.h"

namespace ricci::apps {

// The values of a curve before smoothing.
const std::vector<Point>& measured(const Curve& curve);

// The measured values that the y axis of a panel is to show. A value is left out where it lies further from the middle 90% of the values
// than three times their range, on a logarithmic axis that of their logarithms. So those that are left out are few, and with them the
// others would share a quarter of the axis. A curve that comes from far away, as a loss does, shows where it comes from: two values and
// more at its beginning are not left out. Fewer than 20 values, and those whose middle has no range, stay as they are.
std::vector<double> without_outliers(const Panel& panel, bool log);

// The y axis of a panel. Averages do not change it: it is that of the measured values where the chart is clipped.
Axis y_axis_of(const Panel& panel, const Chart& chart);

// Panels without an x axis of their own share one.
Axis common_x_axis(const Chart& chart);
Axis x_axis_of(const Panel& panel, const Chart& chart, const Axis& common);

// The measured values of a panel that its y axis does not show.
struct Outside {
  int64_t above = 0, below = 0;
  double highest = 0, lowest = 0;
};
Outside outside_of(const Panel& panel, const Axis& y);

// "2 above, up to 512", empty where there is none; short: without how far.
std::string words_of(const Outside& outside, bool is_short);

}  // namespace ricci::apps
