// What is drawn, before it is drawn: panels with curves over a common x axis.
#pragma once
#include <string>
#include <vector>

#include "apps/plot/axis.h"
#include "apps/plot/records.h"

namespace ricci::apps {

struct Point {
  double x, y;
};

struct Curve {
  std::string name;  // run and metric, as far as the chart holds several
  int colour = 0;    // index into the palette, which repeats
  bool dashed = false;
  std::vector<Point> points;
  std::vector<Point> raw = {};  // before smoothing, drawn faint; empty: not smoothed
  bool marked = false;          // a dot at each point
  std::vector<std::string> labels = {};  // beside the dots, one for each point; empty: none
};

struct Panel {
  std::string title, unit;
  std::vector<Curve> curves;
};

struct LegendEntry {
  std::string name;
  int colour;  // -1: of no run
  bool dashed;
};

struct Chart {
  std::string title, x_name;
  bool log_x = false, log_y = false;
  bool whole_x = false;    // ticks at whole numbers of x only
  bool scattered = false;  // the x axis is drawn around the points, and not from 0 on
  std::vector<Panel> panels;
  std::vector<LegendEntry> legend;
  int64_t left_out = 0;  // values that are not finite, beyond what an axis can show, or not above 0 where it is logarithmic
};

struct ChartOptions {
  std::vector<std::string> keys = {};  // empty: losses, learning rate, gradient norm and speed, as far as they were measured
  std::string x = "step";              // step, tokens or time
  double smooth = 0;                   // weight of the past in the exponential moving average, at least 0 and below 1
  bool log_x = false, log_y = false;
  std::string title = {};
};

// Errors: a key or x that no run has (the nearest named), a key without a value to draw.
Chart make_chart(const std::vector<RunRecords>& runs, const ChartOptions& options);

// The exponential moving average of y with that weight of the past, corrected for its start: sum_i w^(n-i) y_i / sum_i w^(n-i).
std::vector<Point> smoothed(const std::vector<Point>& points, double weight);

// At most about 4 * columns points that look the same when drawn `columns` wide: of each column the first, last, least and
// greatest. x is ascending.
std::vector<Point> thinned(const std::vector<Point>& points, int columns);

// A table with a header: what each run came to.
std::vector<std::vector<std::string>> summary(const std::vector<RunRecords>& runs);

}  // namespace ricci::apps
