// What is drawn, before it is drawn: panels with curves over a common x axis, or each over its own.
#pragma once
#include <string>
#include <vector>

#include "apps/lab/plot/axis.h"
#include "apps/lab/plot/records.h"

namespace ricci::apps {

struct Point {
  double x, y;
};

struct Curve {
  std::string name;  // run and metric, as far as the chart holds several
  int colour = 0;    // number of the run or metric: index into the palette, which repeats with other patterns of dashes
  bool dashed = false;
  std::vector<Point> points;
  std::vector<Point> raw = {};           // before smoothing, drawn faint; empty: not smoothed
  size_t raw_before = 0;                 // values of raw before the first point: points[i] is the average at raw[raw_before + i]
  bool marked = false;                   // a dot at each point
  std::vector<std::string> labels = {};  // beside the dots, one for each point; empty: none
  std::vector<double> steps = {};        // of each point, where the curve is to be averaged
};

struct Panel {
  std::string title, unit;
  std::vector<Curve> curves;
  std::string x_name = {};  // of an x axis of its own; empty: that of the chart
};

struct LegendEntry {
  std::string name;
  int colour;  // -1: of no run, drawn as text is
  bool dashed;
  int round = 0;  // of no run: that of the curves whose dashes it shows, see round_of
};

constexpr int kColours = 12, kRounds = 3;
// How often the palette was used up before this colour: curves of the same colour differ in their dashes, which repeat after kRounds.
constexpr int round_of(int colour) { return colour / kColours % kRounds; }

struct Chart {
  std::string title, x_name;
  bool log_x = false, log_y = false;
  bool whole_x = false;    // ticks at whole numbers of x only
  bool scattered = false;  // the x axis is drawn around the points, and not from 0 on
  bool clipped = false;    // a few values far from all others do not widen a y axis (apps/lab/plot/panel_axes.h)
  std::vector<Panel> panels;
  std::vector<LegendEntry> legend;
  int64_t left_out = 0;  // values that are not finite, beyond what an axis can show, or not above 0 where it is logarithmic
};

struct ChartOptions {
  std::vector<std::string> keys = {};  // empty: losses, learning rate, gradient norm and speed, as far as they were measured
  std::string x = "step";              // step, tokens or time
  double smooth = 0;                   // steps, the time constant of the moving average of noisy curves; 0: as measured
  bool log_x = false, log_y = false;
  bool full_range = false;  // y axes show every value, however far it lies from the others
  std::string title = {};
};

// Errors: a key or x that no run has (the nearest named), a key without a value to draw.
Chart make_chart(const std::vector<RunRecords>& runs, const ChartOptions& options);

// Seconds of training up to each record, without evaluations and without the time between two sessions of a run: the tokens since the
// record before, divided by tokens_per_s, which is measured over the same steps; by the median speed where none was measured. A
// run that tells no tokens or no speed has only the time of day, which is counted from its first record. NaN: unknown.
// Error: the run tells none of the three.
std::vector<double> training_seconds(const RunRecords& run);

// At most about 4 * columns points that look the same when drawn `columns` wide: of each column the first, last, least and
// greatest. x is ascending.
std::vector<Point> thinned(const std::vector<Point>& points, int columns);

// A table with a header: what each run came to.
std::vector<std::vector<std::string>> summary(const std::vector<RunRecords>& runs);

}  // namespace ricci::apps
