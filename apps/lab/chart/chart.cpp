#include "apps/lab/chart/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "apps/terminal/numbers.h"
#include "data/text/utf8.h"

namespace ricci::apps {
namespace {

// ---- Axes
int decade(double value) { return static_cast<int>(std::floor(std::log10(value) + 1e-9)); }

// All labels of an axis have the same unit and number of decimals. `largest`: the largest magnitude. `step`: the distance between ticks.
std::string label(double value, double largest, double step) {
  if (value == 0) return "0";
  if (largest < 1e-3 * (1 - 1e-9) || largest >= 1e15) {
    const int exponent = decade(std::abs(value));
    return fmt::format("{:.4g}e{}", value / std::pow(10.0, exponent), exponent);
  }
  constexpr const char* kUnits[] = {"", "k", "M", "G", "T"};
  const int thousands = largest >= 1e4 ? decade(largest) / 3 : 0;
  const double unit = std::pow(1000.0, thousands);
  const int decimals = std::max(0, -decade(step / unit));
  const std::string number = decimals > 0 ? fmt::format("{:.{}f}", value / unit, decimals) : with_commas(std::llround(value / unit));
  return number + kUnits[thousands];
}

std::string exact(double value) {
  const bool is_whole = value == std::round(value) && std::abs(value) < 1e15;
  return is_whole ? with_commas(std::llround(value)) : fmt::format("{:.5g}", value);
}

// Logarithmic axes of integers have ticks at powers of two.
double base_of(const Axis& axis) { return axis.whole ? 2 : 10; }

// Ticks at the powers with exponents divisible by `every`; if `every` is 0, at 1, 2 and 5 times each power.
std::vector<Tick> logarithmic_ticks(const Axis& axis, int every) {
  const double slack = 1e-9 * axis.low;  // for rounding
  const auto first = static_cast<int>(std::log(axis.low) / std::log(base_of(axis))) - 1;
  const std::vector<int> factors = every == 0 ? std::vector{1, 2, 5} : std::vector{1};
  std::vector<Tick> result;
  for (int exponent = first; std::pow(base_of(axis), exponent) <= axis.high + slack; ++exponent) {
    if (every > 0 && exponent % every != 0) continue;
    for (const int factor : factors) {
      // Read from decimal text: powers of ten below 1 are not exact.
      const double value = axis.whole ? std::pow(2, exponent) : std::stod(fmt::format("{}e{}", factor, exponent));
      if (value < axis.low - slack || value > axis.high + slack) continue;
      result.push_back({value, axis.whole ? exact(value) : label(value, value, value / factor)});
    }
  }
  return result;
}

// Ticks at multiples of 1, 2 or 5 times a power of ten.
std::vector<Tick> linear_ticks(const Axis& axis, int count) {
  const double distance = (axis.high - axis.low) / count, power = std::pow(10.0, decade(distance));
  const double slack = axis.log ? 1e-9 * axis.low : 1e-6 * distance;  // for rounding
  double step = axis.whole ? std::max(power, 1.0) : power;
  for (const double factor : {2.0, 5.0, 10.0})
    if (step < distance * (1 - 1e-9)) step = factor * power;
  const double largest = std::max(std::abs(axis.low), std::abs(axis.high));
  std::vector<Tick> result;
  for (double i = std::ceil((axis.low - slack) / step); i * step <= axis.high + slack; ++i)
    result.push_back({i * step, label(i * step, largest, step)});
  return result;
}

std::string with_scale(const std::string& name, bool log) {
  if (!log) return name;
  return name + (name.empty() ? "logarithmic" : ", logarithmic");
}

Axis x_axis_of(const Chart& chart) {
  std::vector<double> values;
  for (const Panel& panel : chart.panels)
    for (const Curve& curve : panel.curves)
      for (const Point& point : curve.points) values.push_back(point.x);
  Axis axis = axis_around(values, chart.log_x, 2);
  axis.whole = chart.whole_x;
  return axis;
}

// Bands widen the axis by at most half of the value range on each side. A wide band would flatten all curves.
Axis y_axis_of(const Panel& panel, bool log) {
  std::vector<double> values;
  for (const Curve& curve : panel.curves)
    for (const Point& point : curve.points) values.push_back(point.y);
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  const double room = values.empty() ? 0 : (*greatest - *least) / 2;
  for (const Curve& curve : panel.curves)
    for (const Point& point : curve.points) {
      const double half = curve.points.size() == 1 ? point.half_width : std::min(point.half_width, room);
      for (const double end : {point.y - half, point.y + half})
        if (drawable(end, log)) values.push_back(end);
    }
  return axis_around(values, log);
}

// ---- Curves
constexpr double kWidth = 560, kHeight = 254;  // a picture's width, and the height of its curves

struct Frame {
  Axis x, y;
  double left, top, right, bottom;

  double x_at(double value) const { return left + (right - left) * x.share(value); }
  // A band can exceed the axis, even below 0 on a logarithmic axis.
  double y_at(double value) const { return bottom - (bottom - top) * y.share(std::clamp(value, y.low, y.high)); }
};

std::string draw_axes(const Frame& frame, const std::string& x_name) {
  const auto& [x_axis, y_axis, left, top, right, bottom] = frame;
  std::string svg = svg_line(left, bottom, right, bottom, "class=\"axis\"");
  for (const Tick& tick : ticks(y_axis, 6)) {
    const double y = frame.y_at(tick.value);
    svg += svg_line(left, y, right, y, "class=\"grid\"") + svg_text(left - 8, y + 5, "muted", kEnd, tick.label);
  }
  for (const Tick& tick : ticks(x_axis, 6)) {
    const double x = frame.x_at(tick.value);
    svg += svg_line(x, bottom, x, bottom + 5, "class=\"axis\"") + svg_text(x, bottom + 21, "muted", kMiddle, tick.label);
  }
  return svg + svg_text((left + right) / 2, bottom + 42, "muted", kMiddle, fitting(x_name, kWidth));
}

// Keeps the lowest and the highest point of each pixel column, for small files of long curves.
std::vector<Point> thinned(const Frame& frame, const std::vector<Point>& points) {
  if (points.size() < 400) return points;
  std::vector<Point> result;
  for (auto begin = points.begin(); begin != points.end();) {
    const double next = std::floor(frame.x_at(begin->x)) + 1;
    const auto end = std::find_if(begin, points.end(), [&](const Point& point) { return frame.x_at(point.x) >= next; });
    const auto [least, greatest] = std::minmax_element(begin, end, [](const Point& a, const Point& b) { return a.y < b.y; });
    result.push_back(*std::min(least, greatest));
    if (least != greatest) result.push_back(*std::max(least, greatest));
    begin = end;
  }
  return result;
}

// When colours repeat, lines are dotted, and dashed lines have dots between the dashes.
std::string pattern_of(const Curve& curve) {
  const bool is_second = curve.colour / kColours % 2 == 1;
  if (!is_second) return "";
  return curve.dashed ? " style=\"stroke-dasharray:7 5 1 5\"" : " style=\"stroke-dasharray:1 5\"";
}

// Draws the area of the intervals, along the upper ends and back along the lower ends. A single point gets a bar.
std::string draw_band(const Frame& frame, const std::vector<Point>& points, int colour) {
  const bool has_intervals = std::any_of(points.begin(), points.end(), [](const Point& point) { return point.half_width > 0; });
  if (!has_intervals) return "";
  std::string upper, lower;
  for (const auto& [x, y, half_width] : points) {
    upper += fmt::format("{}{:.1f} {:.1f}", upper.empty() ? 'M' : 'L', frame.x_at(x), frame.y_at(y + half_width));
    lower = fmt::format("L{:.1f} {:.1f}", frame.x_at(x), frame.y_at(y - half_width)) + lower;
  }
  return fmt::format("<path d=\"{}{}Z\" class=\"{}{}\"/>\n", upper, lower, points.size() == 1 ? "bar c" : "band f", colour);
}

// Dots show the name and the values under the pointer. A long curve has about 60 invisible dots.
std::string draw_dots(const Frame& frame, const Curve& curve, const std::vector<Point>& points, int colour) {
  const bool are_visible = curve.marked || points.size() == 1 || (curve.dashed && points.size() <= 60);
  const size_t every = are_visible ? 1 : points.size() / 60 + 1;
  std::string dots;
  for (size_t i = 0; i < points.size(); i += every) {
    const auto& [x, y, half_width] = points[i];
    const std::string interval = half_width > 0 ? " ± " + exact(half_width) : "";
    dots +=
        fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" class=\"{}f{}\"><title>{}: {}, {}{}</title></circle>\n", frame.x_at(x),
            frame.y_at(y), curve.dashed ? 3 : 4, are_visible ? "" : "hit ", colour, escaped(curve.name), exact(x), exact(y), interval);
  }
  return dots;
}

std::string draw_curve(const Frame& frame, const Curve& curve) {
  const std::vector<Point> points = thinned(frame, curve.points);
  const int colour = curve.colour % kColours;
  std::string line;
  for (const Point& point : points)
    line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? 'M' : 'L', frame.x_at(point.x), frame.y_at(point.y));
  if (curve.faint) return fmt::format("<path d=\"{}\" class=\"faint c{}\"/>\n", line, colour);
  const char* const look = curve.dashed ? "curve dashed" : "curve";
  return draw_band(frame, points, colour) + fmt::format("<path d=\"{}\" class=\"{} c{}\"{}/>\n", line, look, colour, pattern_of(curve)) +
         draw_dots(frame, curve, points, colour);
}

// ---- Panels
struct LegendEntry {
  std::string name, look;  // look: SVG attributes of the entry's line
  bool operator==(const LegendEntry&) const = default;
};

// The legend lists the curves' names or, if all are equal, only training and validation.
std::vector<LegendEntry> legend_of(const Chart& chart, const Panel& panel) {
  std::set<std::string> names;
  for (const Panel& each : chart.panels)
    for (const Curve& curve : each.curves) names.insert(curve.name);
  const bool has_names = names.size() > 1;
  const bool has_dashes = std::any_of(panel.curves.begin(), panel.curves.end(), [](const Curve& curve) { return curve.dashed; });
  if (!has_names && !has_dashes) return {};
  std::vector<LegendEntry> entries;
  for (Curve curve : panel.curves) {
    if (curve.faint) continue;
    LegendEntry entry{curve.name, ""};
    if (has_names) curve.dashed = false;  // training and validation share an entry
    else entry.name = curve.dashed ? "validation" : "training";
    entry.look = fmt::format("class=\"curve {}c{}\"{}", curve.dashed ? "dashed " : "", curve.colour % kColours, pattern_of(curve));
    if (std::find(entries.begin(), entries.end(), entry) == entries.end()) entries.push_back(entry);
  }
  if (has_names && has_dashes) entries.push_back({"validation", "class=\"curve dashed axis\""});
  return entries;
}

// Draws the entries in rows from y downwards, and moves y to the last row.
std::string draw_legend(const std::vector<LegendEntry>& entries, double& y) {
  constexpr double kLine = 34, kGap = 20;  // space for a line before the name; space after the name
  std::string svg;
  double x = kWidth;
  for (const LegendEntry& entry : entries) {
    const std::string name = fitting(entry.name, kWidth - kLine);
    if (x + kLine + width_of(name) > kWidth) {
      x = 0;
      y += 22;
    }
    svg += svg_line(x, y - 5, x + 26, y - 5, entry.look) + svg_text(x + kLine, y, "ink", "", name);
    x += kLine + width_of(name) + kGap;
  }
  return svg;
}

Picture draw_panel(const Chart& chart, const Panel& panel, double top) {
  double last_row = 20;
  const std::string title = fitting(panel.title, 420), unit = with_scale(panel.unit, chart.log_y);
  std::string svg = fmt::format("<text y=\"20\" class=\"ink strong\">{}<tspan class=\"muted\" dx=\"8\">{}</tspan></text>\n", escaped(title),
      escaped(fitting(unit, kWidth - 1.15 * width_of(title))));
  svg += draw_legend(legend_of(chart, panel), last_row);
  Frame frame{x_axis_of(chart), y_axis_of(panel, chart.log_y), 0, top, kWidth - 20, top + kHeight};
  for (const Tick& tick : ticks(frame.y, 6)) frame.left = std::max(frame.left, width_of(tick.label) + 12);
  svg += draw_axes(frame, with_scale(chart.x_name, chart.log_x));
  for (const Curve& curve : panel.curves) svg += draw_curve(frame, curve);
  return {.name = panel.title, .width = kWidth, .height = frame.bottom + 50, .elements = svg};
}

// ---- Style
constexpr const char* kRules = R"(
text{font:14px system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','DejaVu Sans',Arial,sans-serif;font-variant-numeric:tabular-nums}
text.strong{font-weight:600} tspan.muted{font-weight:400} text.title{font-size:18px} .grid,.axis{stroke-width:1}
.curve,.faint,.bar{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round} .dashed{stroke-dasharray:7 5}
.faint{stroke-width:1;opacity:.35} .band{opacity:.15} .hit{opacity:0} .hit:hover{opacity:1}
)";
constexpr const char* kLight[] = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555b61", "#6a1fb8", "#8b1a1a", "#5f6b00", "#d811c0", "#003c54"};
constexpr const char* kDark[] = {
    "#4aa8e8", "#f0813a", "#2fc29b", "#e39ac4", "#f2bd4a", "#9ad4f5", "#8d949d", "#8f55f0", "#d02c4c", "#c3e63c", "#ff6cf0", "#13707f"};

std::string rules(const char* background, const char* ink, const char* muted, const char* grid, const char* axis, const auto& colours) {
  std::string css =
      fmt::format(":root{{background:{0};color:{1};--muted:{2};--grid:{3}}} .background{{fill:{0}}} .ink{{fill:{1}}} .muted{{fill:{2}}} "
                  ".grid{{stroke:{3}}} .axis{{stroke:{4}}}\n",
          background, ink, muted, grid, axis);
  for (int i = 0; i < kColours; ++i) css += fmt::format(".c{0}{{stroke:{1}}} .f{0}{{fill:{1}}} ", i, colours[i]);
  return css + "\n";
}

}  // namespace

std::string picture_style() {
  return kRules + rules("#ffffff", "#101215", "#59636e", "#e8ebee", "#9aa3ad", kLight) + "@media (prefers-color-scheme:dark){\n" +
         rules("#14171b", "#e8eaed", "#a0a9b4", "#272c33", "#5c6671", kDark) + "}\n";
}

std::string escaped(std::string_view text) {
  static const std::map<char, const char*> kEntities = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  std::string result;
  for (const char c : replace_invalid_utf8(text)) {
    const bool is_control = (static_cast<unsigned char>(c) < 32 && c != '\n') || c == 127;
    if (const auto entity = kEntities.find(c); entity != kEntities.end()) result += entity->second;
    else result += is_control ? "\uFFFD" : std::string(1, c);
  }
  return result;
}

std::string svg_text(double x, double y, const std::string& classes, const std::string& more, const std::string& content) {
  return fmt::format("<text x=\"{:.6g}\" y=\"{:.6g}\" class=\"{}\"{}>{}</text>\n", x, y, classes, more, escaped(content));
}

std::string svg_line(double x1, double y1, double x2, double y2, const std::string& attributes) {
  return fmt::format("<line x1=\"{:.6g}\" y1=\"{:.6g}\" x2=\"{:.6g}\" y2=\"{:.6g}\" {}/>\n", x1, y1, x2, y2, attributes);
}

std::string svg_rectangle(double x, double y, double width, double height, const std::string& attributes) {
  return fmt::format("<rect x=\"{:.6g}\" y=\"{:.6g}\" width=\"{:.6g}\" height=\"{:.6g}\" {}/>\n", x, y, width, height, attributes);
}

double width_of(const std::string& text) { return 8 * static_cast<double>(count_characters(text)); }

std::string fitting(const std::string& text, double width) {
  if (width_of(text) <= width) return text;
  std::string cut = text;
  while (!cut.empty() && width_of(cut) > width - 8) cut.resize(complete_utf8_prefix(std::string_view(cut).substr(0, cut.size() - 1)));
  return cut + "…";
}

// Subtracts logarithms: the quotient of the largest and the smallest drawable value exceeds the range of f64.
double Axis::share(double value) const {
  return log ? (std::log(value) - std::log(low)) / (std::log(high) - std::log(low)) : (value - low) / (high - low);
}

Axis axis_around(std::span<const double> values, bool log, double quotient) {
  if (values.empty()) return log ? Axis{1, 10, true} : Axis{0, 1};
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  double low = *least, high = *greatest;
  // Values that differ only by rounding, such as means of a constant, are treated as equal.
  if (high - low <= 1e-9 * std::max(std::abs(low), std::abs(high))) low = high;
  if (log) {
    const double range = std::log(high) - std::log(low), room = std::max(0.04 * range, (std::log(quotient) - range) / 2);
    return {low / std::exp(room), high * std::exp(room), true};
  }
  double room = 0.04 * (high - low);
  if (low == high) room = low == 0 ? 1 : std::abs(low) / 2;
  return {low >= 0 && low < 0.1 * high ? 0 : low - room, high + room};
}

std::vector<Tick> ticks(const Axis& axis, int count) {
  const bool has_powers = axis.log && axis.high / base_of(axis) >= axis.low;
  if (!has_powers) return linear_ticks(axis, count);
  // From many ticks to few: 1, 2 and 5 times each power of ten (not for integers), each power, every second power ...
  int every = axis.whole ? 1 : 0;
  std::vector<Tick> result = logarithmic_ticks(axis, every);
  while (std::ssize(result) > count) result = logarithmic_ticks(axis, ++every);
  return result;
}

void add_curves(Chart& chart, const std::string& name, const std::vector<std::vector<Point>>& points, bool marked) {
  int colour = 0;
  for (const Panel& panel : chart.panels)
    for (const Curve& curve : panel.curves) colour = std::max(colour, curve.colour + 1);
  for (size_t i = 0; i < points.size(); ++i)
    if (!points[i].empty()) chart.panels.at(i).curves.push_back({.name = name, .colour = colour, .marked = marked, .points = points[i]});
}

std::vector<Picture> pictures_of(const Chart& given) {
  Chart chart = given;
  const auto is_left_out = [&](const Point& point) { return !drawable(point.x, chart.log_x) || !drawable(point.y, chart.log_y); };
  std::vector<Picture> pictures;
  for (Panel& panel : chart.panels)
    for (Curve& curve : panel.curves) std::erase_if(curve.points, is_left_out);
  // Pictures in a row reserve equal heights for legends, so their axes are level.
  double last_row = 0;
  for (const Panel& panel : chart.panels) {
    double y = 20;
    draw_legend(legend_of(chart, panel), y);
    last_row = std::max(last_row, y);
  }
  for (const Panel& panel : chart.panels) pictures.push_back(draw_panel(chart, panel, last_row + 16));
  return pictures;
}

}  // namespace ricci::apps
