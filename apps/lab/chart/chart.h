// A picture is SVG elements in a box. A chart consists of panels with axes and curves; each panel becomes a picture. A report writes
// pictures into a file or a page (apps/lab/report/report.h). The CSS follows the reader's light or dark mode, and `<title>` shows a value
// under the pointer.
#pragma once
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ricci::apps {

// ---- Pictures
struct Picture {
  std::string name = {};         // as a file name, such as layer0_head1_scores
  std::string group = {};        // a shared heading: "layer 0"
  double width = 0, height = 0;  // approximately in pixels
  std::string elements = {};     // SVG from (0, 0) to (width, height), with the classes of picture_style()
  std::string caption = {};      // below the picture on a page
};

// The CSS of pictures, light and dark. The first seven colours are safe for colour-blind readers (Okabe and Ito 2008). Classes: ink, muted
// (text), grid, axis (lines), c0 .. c11 (curves), f0 .. f11 (fills).
std::string picture_style();
constexpr int kColours = 12;

// Text for XML and HTML: &, <, > and quotes become entities. Control characters and invalid UTF-8 become U+FFFD.
std::string escaped(std::string_view text);
double width_of(const std::string& text);                    // approximately in pixels
std::string fitting(const std::string& text, double width);  // truncated if it is wider

// SVG elements. `classes`: CSS classes of picture_style(). `more`: further attributes, each after a blank.
constexpr const char *kMiddle = " text-anchor=\"middle\"", *kEnd = " text-anchor=\"end\"";  // for `more`
std::string svg_text(double x, double y, const std::string& classes, const std::string& more, const std::string& content);
std::string svg_line(double x1, double y1, double x2, double y2, const std::string& attributes);
std::string svg_rectangle(double x, double y, double width, double height, const std::string& attributes);

// ---- Axes
struct Axis {
  double low = 0, high = 1;  // low < high; both above 0 on a logarithmic axis
  bool log = false;
  bool whole = false;  // ticks at integers or, on a logarithmic axis, at powers of two

  double share(double value) const;  // 0 at low, 1 at high
};

// True if an axis can show the value: 0 or of magnitude 1e-200 to 1e200, and above 0 on a logarithmic axis.
inline bool drawable(double value, bool log = false) {
  return std::isfinite(value) && (log ? value > 0 : true) && (value == 0 || (std::abs(value) >= 1e-200 && std::abs(value) <= 1e200));
}

// An axis for drawable values. A linear axis starts at 0 if the values come close to it. A logarithmic axis spans at least a factor of
// `quotient`.
Axis axis_around(std::span<const double> values, bool log, double quotient = 3);

struct Tick {
  double value;
  std::string label;  // 0.25, 1,500, 20k, 5e-4
};
// About `count` ticks (5 or more) at 1, 2 or 5 times a power of ten.
std::vector<Tick> ticks(const Axis& axis, int count);

// ---- Charts
struct Point {
  double x, y;
  double half_width = 0;  // half of the interval around y: drawn as a band around a line or as a bar through a dot
};

struct Curve {
  std::string name;                // in the legend and under the pointer
  int colour = 0;                  // index into the repeating palette
  bool dashed = false;             // for validation
  bool faint = false;              // for values before smoothing: thin, not in the legend
  bool marked = false;             // a dot at each point
  std::vector<Point> points = {};  // ascending in x
};

struct Panel {
  std::string title, unit;
  std::vector<Curve> curves = {};
};

struct Chart {
  std::string x_name = {};
  bool log_x = false, log_y = false;
  bool whole_x = false;  // as Axis::whole
  std::vector<Panel> panels = {};
};

// Adds points[i], unless empty, to panel i as a curve with the next colour.
void add_curves(Chart& chart, const std::string& name, const std::vector<std::vector<Point>>& points, bool marked = true);

// A picture for each panel, with a legend unless all curves share a name. Omits points that an axis cannot show.
std::vector<Picture> pictures_of(const Chart& chart);

}  // namespace ricci::apps
