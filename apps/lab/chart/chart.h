// Pictures, in the order to read: a chart is panels with axes and curves, a heat map is a table of numbers as coloured cells. Both become
// pictures: elements of SVG in a box. A report puts pictures into a file or a page (apps/lab/report/report.h), so every picture has one
// drawing for all of its uses. Light and dark follow the reader's system by one rule of CSS, and `<title>` gives a value under the pointer.
#pragma once
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ricci::apps {

// ---- Pictures

struct Picture {
  std::string name = {};         // the name of a file with only this picture: layer0_head1_scores
  std::string group = {};        // the heading above the pictures that share it: "layer 0"
  double width = 0, height = 0;  // in units of about a pixel
  std::string elements = {};     // SVG in the box from (0, 0) to (width, height), with the classes of picture_style()
  std::string caption = {};      // a sentence below the picture on a page
};

// The rules of CSS that pictures use, light and dark. Okabe and Ito (2008) chose the first seven colours: colour-blind readers can
// distinguish them. Classes: ink, muted (text), grid, axis (lines), c0 .. c11 (strokes of curves), f0 .. f11 (fills).
std::string picture_style();
constexpr int kColours = 12;

// Text for XML and HTML: &, <, > and quotes as entities; bytes that are not UTF-8 and control characters become U+FFFD.
std::string escaped(std::string_view text);
// The text, or its beginning if it is wider.
std::string fitting(const std::string& text, double width);

// Elements. classes: of the style; more: attributes with a blank before each.
std::string svg_text(double x, double y, const std::string& classes, const std::string& more, const std::string& content);
std::string svg_line(double x1, double y1, double x2, double y2, const std::string& classes);
std::string svg_rectangle(double x, double y, double width, double height, const std::string& attributes);

// ---- Axes

struct Axis {
  double low = 0, high = 1;  // low < high; both above 0 on a logarithmic axis
  bool log = false;
  bool whole = false;  // ticks at whole numbers only; on a logarithmic axis at powers of two

  // 0 at low, 1 at high.
  double share(double value) const;
};

// True if an axis can show the value: it is finite, its magnitude is 0 or from 1e-200 to 1e200, and it is above 0 on a logarithmic axis.
inline bool drawable(double value, bool log = false) {
  return std::isfinite(value) && (log ? value > 0 : true) && (value == 0 || (std::abs(value) >= 1e-200 && std::abs(value) <= 1e200));
}

// An axis that shows all values, which are drawable. A linear one starts at 0 if the values reach far down to it. The ends of a logarithmic
// one have at least that quotient, because otherwise 10 and 12 would look like nothing and all.
Axis axis_around(std::span<const double> values, bool log, double quotient = 3);

struct Tick {
  double value;
  std::string label;  // 0.25, 1,500, 20k, 5e-4
};
// About `count` ticks, from 5 on, at 1, 2 or 5 times a power of ten.
std::vector<Tick> ticks(const Axis& axis, int count);

// ---- Charts

struct Point {
  double x, y;
  double half_width = 0;   // half of the interval around y: a band around a line, a bar at a dot
  std::string label = {};  // next to the dot
};

struct Curve {
  std::string name;                // in the legend, and under the pointer
  int colour = 0;                  // index into the palette, which repeats
  bool dashed = false;             // validation
  bool faint = false;              // values before smoothing: thin, without an entry in the legend
  bool marked = false;             // a dot at each point
  std::vector<Point> points = {};  // ascending in x
};

struct Panel {
  std::string title, unit;
  std::vector<Curve> curves = {};
};

struct Chart {
  std::string x_name = {};
  bool log_x = false, log_y = false;  // an axis that is logarithmic says so
  bool whole_x = false;               // ticks at whole numbers of x only; on a logarithmic axis at powers of two
  std::vector<Panel> panels = {};
};

// A curve for each panel with the next colour: points[i] in panel i, if there are any.
void add_curves(Chart& chart, const std::string& name, const std::vector<std::vector<Point>>& points, bool marked = true);

// A picture for each panel, with its legend unless one name says it all. Points that an axis cannot show are left out.
std::vector<Picture> pictures_of(const Chart& chart);

// ---- Heat maps

struct HeatMap {
  std::string title, row_name, column_name;
  std::vector<std::string> row_labels, column_labels;  // if empty, they are counted from 0
  int64_t columns = 0;
  std::vector<double> values;  // row by row
  int64_t rows() const { return columns ? static_cast<int64_t>(values.size()) / columns : 0; }
};

constexpr int64_t kMaxCells = 64;
// The side of the blocks that a map shows as one cell, because a picture has at most 64 x 64: the number of largest magnitude in each.
int64_t block_of(const HeatMap& map);
// 0 is the background; blue is above it, orange below. Cells of a map up to 8 x 8 have their values in them.
Picture picture_of(const HeatMap& map);

}  // namespace ricci::apps
