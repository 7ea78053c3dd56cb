// Drawings, in the order to read: a chart is panels with axes and curves (chart.h), and svg.h draws it in the colours of style.cpp.
// heat_map.h draws tables of numbers.
#pragma once
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ricci::apps {

// ---- Axes: from values to a share of the length, and ticks at round numbers

struct Axis {
  double low = 0, high = 1;  // low < high; both above 0 on a logarithmic axis
  bool log = false;
  bool whole = false;           // a linear axis with ticks at whole numbers only
  std::vector<double> at = {};  // ascending whole numbers; each has a tick if there is room for all

  // 0 at low, 1 at high.
  double share(double value) const;
  // True if the value is between the ends, up to rounding.
  bool shows(double value) const { return share(value) >= -1e-9 && share(value) <= 1 + 1e-9; }
};

// True if an axis can show the value: it is finite, and neither so large nor so small that the ends of an axis or the distance of its
// ticks would leave the range of numbers.
inline bool drawable(double value) { return value == 0 || (std::abs(value) >= 1e-200 && std::abs(value) <= 1e200); }

// An axis that shows all values, with a little space around them on a linear one; from 0 on where they are positive and
// reach far down. The values are drawable, and above 0 for a logarithmic axis. No value or a single one gives a range too.
Axis axis_around(std::span<const double> values, bool log, bool with_margin);

struct Tick {
  double value;
  std::string label;  // 0.25, 1,500, 20k, 5e-4
};

// About `count` ticks, from 4 on. A linear axis has at least 2 and at most one more than asked for, at multiples of 1, 2 or 5 times a power
// of ten. A logarithmic axis of a decade and more has them at 1, 2 and 5 times powers of ten, or at powers alone. If axis.at is given and
// the labels of its numbers do not touch, the ticks are at these.
std::vector<Tick> ticks(const Axis& axis, int count);

// ---- Charts

struct Point {
  double x, y;
};

struct Curve {
  std::string name;  // run and metric, as far as the chart holds several
  int colour = 0;    // number of the run or metric: index into the palette, which repeats with other patterns of dashes
  bool dashed = false;
  std::vector<Point> points = {};
  std::vector<Point> raw = {};           // before smoothing, drawn faint; empty if not smoothed
  size_t raw_before = 0;                 // values of raw before the first point: points[i] is the average at raw[raw_before + i]
  bool marked = false;                   // a dot at each point
  std::vector<double> half_widths = {};  // half of the interval around each point: a band, or a bar at a single point; empty: none
  std::vector<std::string> labels = {};  // beside the dots, one for each point, or none at all
  std::vector<double> steps = {};        // one for each point, where the curve is to be averaged
};

struct Panel {
  std::string title, unit;
  std::vector<Curve> curves = {};
  std::string x_name = {};  // panels of one name share an x axis; if empty, the chart gives the name
};

struct LegendEntry {
  std::string name;
  int colour;  // -1 for an entry of no run, which is drawn in the colour of text
  bool dashed = false;
  int round = 0;  // where it belongs to no run: the round of the curves whose dashes it shows, see round_of
};

constexpr int kColours = 12, kRounds = 3;
// The number of times that the palette was used up before this colour: curves of the same colour differ in their dashes, which repeat
// after kRounds.
constexpr int round_of(int colour) { return colour / kColours % kRounds; }

struct Chart {
  std::string title = {}, x_name = {};
  bool log_x = false, log_y = false;
  bool whole_x = false;    // ticks at whole numbers of x only
  bool given_x = false;    // ticks at the values of x that the curves have, which are whole numbers
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

// The measured values that the y axis of a panel is to show. A value is left out where it is further from the middle 90% of the values
// than three times their range; a logarithmic axis compares logarithms. So few values are left out, and with them the others would
// share a quarter of the axis. A curve that comes from far away, as a loss does, shows where it comes from: two values and more at its
// beginning are not left out. Fewer than 20 values stay as they are, and so do values whose middle has no range.
std::vector<double> without_outliers(const Panel& panel, bool log);

// The y axis of a panel. Where the chart is clipped it shows the measured values, and averages do not change it. Bands widen it by at most
// the range of the values on each side, bars as far as they reach.
Axis y_axis_of(const Panel& panel, const Chart& chart);
// The x axis that all panels with this x_name share. Where all their curves are single points, it is drawn around them.
Axis x_axis_of(const Chart& chart, const std::string& x_name);

// The measured values of a panel that its y axis does not show.
struct Outside {
  int64_t above = 0, below = 0;
  double highest = 0, lowest = 0;
};
Outside outside_of(const Panel& panel, const Axis& y);

// "2 above, up to 512", empty where there is none; short: without how far.
std::string words_of(const Outside& outside, bool is_short);

}  // namespace ricci::apps
