// Drawings, in the order to read: a chart is panels with curves (chart.h), each panel has axes (axis.h, and below), svg.h draws it, with
// the ends of curves that leave their panel (clipping.cpp) and the colours (style.cpp), page.h makes a page of it. heat_map.h draws
// tables of numbers as pictures (png.h).
#pragma once
#include <string>
#include <vector>

#include "apps/lab/drawing/axis.h"

namespace ricci::apps {

struct Point {
  double x, y;
};

struct Curve {
  std::string name;  // run and metric, as far as the chart holds several
  int colour = 0;    // number of the run or metric: index into the palette, which repeats with other patterns of dashes
  bool dashed = false;
  std::vector<Point> points = {};
  std::vector<Point> raw = {};           // before smoothing, drawn faint; empty: not smoothed
  size_t raw_before = 0;                 // values of raw before the first point: points[i] is the average at raw[raw_before + i]
  bool marked = false;                   // a dot at each point
  std::vector<std::string> labels = {};  // beside the dots, one for each point; empty: none
  std::vector<double> steps = {};        // of each point, where the curve is to be averaged
};

struct Panel {
  std::string title, unit;
  std::vector<Curve> curves = {};
  std::string x_name = {};  // of an x axis of its own; empty: that of the chart
};

struct LegendEntry {
  std::string name;
  int colour;  // -1: of no run, drawn as text is
  bool dashed = false;
  int round = 0;  // of no run: that of the curves whose dashes it shows, see round_of
};

constexpr int kColours = 12, kRounds = 3;
// How often the palette was used up before this colour: curves of the same colour differ in their dashes, which repeat after kRounds.
constexpr int round_of(int colour) { return colour / kColours % kRounds; }

struct Chart {
  std::string title = {}, x_name = {};
  bool log_x = false, log_y = false;
  bool whole_x = false;    // ticks at whole numbers of x only
  bool scattered = false;  // the x axis is drawn around the points, and not from 0 on
  bool clipped = false;    // a few values far from all others do not widen a y axis, see without_outliers
  std::vector<Panel> panels = {};
  std::vector<LegendEntry> legend = {};
  int64_t left_out = 0;  // values that are not finite, beyond what an axis can show, or not above 0 where it is logarithmic
};

// A name in the legend, with the next colour, and its curves: points[i] in panel i, where there are some.
void add_curves(Chart& chart, const std::string& name, const std::vector<std::vector<Point>>& points, bool marked = true);

// At most about 4 * columns points that look the same when drawn `columns` wide: of each column the first, last, least and
// greatest. x is ascending.
std::vector<Point> thinned(const std::vector<Point>& points, int columns);

// ---- Axes of panels. A single value far from all others would flatten the curves: the y axis leaves such values out.

// The values of a curve before smoothing.
inline const std::vector<Point>& measured(const Curve& curve) { return curve.raw.empty() ? curve.points : curve.raw; }

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
