// Moving averages of noisy curves.
#pragma once
#include <vector>

#include "apps/lab/plot/chart.h"

namespace ricci::apps {

// The exponential moving average of y over `constant` steps, where steps[i] is the step of points[i]. Between two records y is taken as
// a straight line, so that the curve does not depend on how often a run wrote a record:
//   average(s) = integral of exp((t - s) / constant) y(t) dt / integral of exp((t - s) / constant) dt,   t from the first record to s
// The division makes it unbiased at the start, as Adam's correction does. Records that are less than a step apart count as one step.
std::vector<Point> smoothed(const std::vector<Point>& points, const std::vector<double>& steps, double constant);

// The curve with the averages of its points, which become its `raw`. Values that the y axis does not show do not enter: a straight line
// between the nearest that it shows takes their place. So a single value far from all others, which is a mark at the border, moves no
// average. The averages go from the first value that is shown to the last. Where none is shown, all values enter.
Curve averaged(Curve measured, double constant, const Axis& y);

}  // namespace ricci::apps
