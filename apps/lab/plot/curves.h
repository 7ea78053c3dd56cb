// ricci-plot, in the order to read: records.h has the numbers of runs, curves.h makes a chart of them, and
// listing.cpp a list of the runs.
#pragma once
#include <string>
#include <vector>

#include "apps/lab/drawing/chart.h"
#include "apps/lab/plot/records.h"
#include "apps/terminal/table.h"

namespace ricci::apps {

struct ChartOptions {
  std::vector<std::string> keys = {};  // if empty, losses, learning rate, gradient norm and speed, as far as they were measured
  std::string x = "step";              // step, tokens or time
  double smooth = 0;                   // steps, the window over which noisy curves are averaged; with 0 they are drawn as measured
  bool log_x = false, log_y = false;
  bool full_range = false;  // y axes show every value, however far it is from the others
  std::string title = {};
};

// Errors: a key or x that no run has (the nearest named), a key without a value to draw.
Chart make_chart(const std::vector<RunRecords>& runs, const ChartOptions& options);

// Seconds of training up to each record, without evaluations and without the time between two sessions of a run: the tokens since the
// record before, divided by tokens_per_s, which is measured over the same steps, or by the median speed where none was measured. If a
// run has no tokens or no speed, its time of day is counted from its first record. NaN where it is unknown.
// Error: the run has no time either.
std::vector<double> training_seconds(const RunRecords& run);

// The step and the value of the lowest validation loss; kNotMeasured where there is none.
Point best_evaluation(const RunRecords& run);

// The last and the best values of each run.
ResultTable summary(const std::vector<RunRecords>& runs);

// The mean of y over a window of `width` steps around each record, where steps[i] is the step of points[i]. Between two records y is taken
// as a straight line, so that the curve does not depend on how often a run wrote a record:
//   average(s) = integral of y(t) dt / (2 h),   t from s - h to s + h,   h = min(width / 2, s - first step, last step - s)
// As the window is centred everywhere, a straight line stays itself: the averages are neither later than the values nor above a falling
// curve at its ends. Records that are less than a step apart count as one step.
std::vector<Point> smoothed(const std::vector<Point>& points, const std::vector<double>& steps, double width);

// The curve with the averages of its points, which become its `raw`. Values that the y axis does not show do not enter: a straight line
// between the nearest shown values takes their place. So a single value far from all others, which is a mark at the border, moves no
// average. The averages go from the first value that is shown to the last. Where none is shown, all values enter.
Curve averaged(Curve measured, double width, const Axis& y);

}  // namespace ricci::apps
