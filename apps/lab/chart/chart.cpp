#include "apps/lab/chart/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "apps/terminal/numbers.h"
#include "apps/terminal/progress.h"
#include "data/text/utf8.h"

namespace ricci::apps {
namespace {

constexpr const char* kMiddle = " text-anchor=\"middle\"";
constexpr const char* kEnd = " text-anchor=\"end\"";

double width_of(const std::string& text) { return 8 * static_cast<double>(count_characters(text)); }

// ---- Axes
int decade(double value) { return static_cast<int>(std::floor(std::log10(value) + 1e-9)); }

// All labels of an axis have the same unit and decimals. `largest` is its largest magnitude, `step` the distance between ticks.
std::string label(double value, double largest, double step) {
  if (value == 0) return "0";
  if (largest < 1e-3 * (1 - 1e-9) || largest >= 1e15) {
    const int exponent = decade(std::abs(value));
    return fmt::format("{:.4g}e{}", value / std::pow(10.0, exponent), exponent);
  }
  const int thousands = largest >= 1e4 ? decade(largest) / 3 : 0;
  const double unit = std::pow(1000.0, thousands);
  const int decimals = std::max(0, -decade(step / unit));
  const std::string number = decimals ? fmt::format("{:.{}f}", value / unit, decimals) : with_commas(std::llround(value / unit));
  return number + std::string(" kMGT").substr(static_cast<size_t>(thousands), thousands > 0);
}

std::string exact(double value) {
  const bool is_whole = value == std::round(value) && std::abs(value) < 1e15;
  return is_whole ? with_commas(std::llround(value)) : fmt::format("{:.5g}", value);
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

// Bands widen the axis by at most half of the range of the values on each side. Otherwise a wide band would flatten all curves.
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
constexpr double kWidth = 560, kHeight = 254;  // a picture's width, and the height of the area of curves

struct Frame {
  Axis x, y;
  double left, top, right, bottom;

  double x_at(double value) const { return left + (right - left) * x.share(value); }
  // A band can reach beyond the axis, even below 0 on a logarithmic one.
  double y_at(double value) const { return bottom - (bottom - top) * y.share(std::clamp(value, y.low, y.high)); }
};

std::string draw_axes(const Frame& frame, const std::string& x_name) {
  const auto& [x_axis, y_axis, left, top, right, bottom] = frame;
  std::string svg = svg_line(left, bottom, right, bottom, "axis");
  for (const Tick& tick : ticks(y_axis, 6)) {
    const double y = frame.y_at(tick.value);
    svg += svg_line(left, y, right, y, "grid") + svg_text(left - 8, y + 5, "muted", kEnd, tick.label);
  }
  for (const Tick& tick : ticks(x_axis, 6)) {
    const double x = frame.x_at(tick.value);
    svg += svg_line(x, bottom, x, bottom + 5, "axis") + svg_text(x, bottom + 21, "muted", kMiddle, tick.label);
  }
  return svg + svg_text((left + right) / 2, bottom + 42, "muted", kMiddle, fitting(x_name, kWidth));
}

// Keeps the least and the greatest point of each column of pixels: a long curve then looks the same, and its file stays small.
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

// Draws a band around the line, or a bar through a single point. Dots show name and values under the pointer; a long curve has about 60.
std::string draw_curve(const Frame& frame, const Curve& curve) {
  const std::vector<Point> points = thinned(frame, curve.points);
  const int colour = curve.colour % kColours;
  const bool has_dots = curve.marked || points.size() == 1 || (curve.dashed && points.size() <= 60);
  bool has_intervals = false;
  std::string line, upper, lower, dots;
  for (size_t i = 0; i < points.size(); ++i) {
    const auto& [x, y, half_width] = points[i];
    const char verb = i ? 'L' : 'M';
    has_intervals |= half_width > 0;
    line += fmt::format("{}{:.1f} {:.1f}", verb, frame.x_at(x), frame.y_at(y));
    upper += fmt::format("{}{:.1f} {:.1f}", verb, frame.x_at(x), frame.y_at(y + half_width));
    lower = fmt::format("L{:.1f} {:.1f}", frame.x_at(x), frame.y_at(y - half_width)) + lower;
    if (curve.faint || (!has_dots && i % (points.size() / 60 + 1))) continue;
    const std::string interval = half_width > 0 ? " ± " + exact(half_width) : "";
    dots +=
        fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" class=\"{}f{}\"><title>{}: {}, {}{}</title></circle>\n", frame.x_at(x),
            frame.y_at(y), curve.dashed ? 3 : 4, has_dots ? "" : "hit ", colour, escaped(curve.name), exact(x), exact(y), interval);
  }
  std::string svg;
  const char* const interval = points.size() == 1 ? "bar c" : "band f";
  const char* const look = curve.dashed ? "curve dashed c" : "curve c";
  if (has_intervals) svg = fmt::format("<path d=\"{}{}Z\" class=\"{}{}\"/>\n", upper, lower, interval, colour);
  return svg + fmt::format("<path d=\"{}\" class=\"{}{}\"/>\n", line, curve.faint ? "faint c" : look, colour) + dots;
}

// ---- Panels
// The names of the curves, and the meaning of dashes, in rows from y down. Moves y to the last row.
std::string draw_legend(const Chart& chart, const Panel& panel, double& y) {
  std::set<std::string> names;
  for (const Panel& each : chart.panels)
    for (const Curve& curve : each.curves) names.insert(curve.name);
  std::vector<std::pair<std::string, std::string>> entries;  // a name and the look of its line
  const bool has_names = names.size() > 1;
  const bool has_dashes = std::any_of(panel.curves.begin(), panel.curves.end(), [](const Curve& curve) { return curve.dashed; });
  for (const Curve& curve : panel.curves) {
    const std::string look = fmt::format("curve {}c{}", curve.dashed && !has_names ? "dashed " : "", curve.colour % kColours);
    const std::string measured = curve.dashed ? "validation" : "training";
    const std::pair entry(has_names ? curve.name : measured, look);
    const bool is_new = std::find(entries.begin(), entries.end(), entry) == entries.end();
    if (is_new && !curve.faint && (has_names || has_dashes)) entries.push_back(entry);
  }
  if (has_names && has_dashes) entries.emplace_back("validation", "curve dashed axis");
  std::string svg;
  double x = kWidth;
  for (const auto& [full_name, look] : entries) {
    const std::string name = fitting(full_name, kWidth - 34);
    if (x + 34 + width_of(name) > kWidth) {
      x = 0;
      y += 22;
    }
    svg += svg_line(x, y - 5, x + 26, y - 5, look) + svg_text(x + 34, y, "ink", "", name);
    x += 34 + width_of(name) + 20;
  }
  return svg;
}

Picture draw_panel(const Chart& chart, const Panel& panel, double top) {
  double last_row = 20;
  const std::string title = fitting(panel.title, 420), unit = with_scale(panel.unit, chart.log_y);
  std::string svg = fmt::format("<text y=\"20\" class=\"ink strong\">{}<tspan class=\"muted\" dx=\"8\">{}</tspan></text>\n", escaped(title),
      escaped(fitting(unit, kWidth - 1.15 * width_of(title))));
  svg += draw_legend(chart, panel, last_row);
  Frame frame{x_axis_of(chart), y_axis_of(panel, chart.log_y), 0, top, kWidth - 20, top + kHeight};
  for (const Tick& tick : ticks(frame.y, 6)) frame.left = std::max(frame.left, width_of(tick.label) + 12);
  svg += draw_axes(frame, with_scale(chart.x_name, chart.log_x));
  for (const Curve& curve : panel.curves) svg += draw_curve(frame, curve);
  return {.name = panel.title, .width = kWidth, .height = frame.bottom + 50, .elements = svg};
}

// ---- Heat maps
constexpr int64_t kMaxCells = 64, kWithNumbers = 8, kWithTitles = 32;  // per side: at most, with numbers, with text under the pointer

// A map with a cell for each block: its number of largest magnitude, or NaN if it has one.
HeatMap shrunk(const HeatMap& map, int64_t block) {
  const auto labels = [&](const std::vector<std::string>& given, int64_t count) {
    std::vector<std::string> kept;
    for (int64_t i = 0; i < count; i += block)
      kept.push_back(given.empty() ? std::to_string(i) : fitting(given[static_cast<size_t>(i)], 100));
    return kept;
  };
  HeatMap result{
      map.title, map.row_name, map.column_name, labels(map.row_labels, map.rows()), labels(map.column_labels, map.columns), 0, {}};
  result.columns = std::ssize(result.column_labels);
  result.values.resize(result.row_labels.size() * result.column_labels.size());
  for (int64_t i = 0; i < std::ssize(map.values); ++i) {
    double& cell = result.values[static_cast<size_t>(i / map.columns / block * result.columns + i % map.columns / block)];
    const double value = map.values[static_cast<size_t>(i)];
    if (!std::isnan(cell) && !(std::abs(value) <= std::abs(cell))) cell = value;
  }
  return result;
}

struct Grid {
  double left, top, width, height, largest;  // width, height: of a cell; largest: the magnitude of full colour

  double x(size_t column) const { return left + (static_cast<double>(column) + 0.5) * width; }
  double y(size_t row) const { return top + (static_cast<double>(row) + 0.5) * height; }
};

// Opacity is the root of the share of the largest magnitude: small shares stay visible. Cells of one colour are one path.
std::string draw_cells(const Grid& grid, const std::vector<double>& values, size_t columns, bool with_numbers) {
  std::map<std::string, std::string> paths;  // by their attributes
  std::string numbers;
  for (size_t i = 0; i < values.size(); ++i) {
    const double opacity = grid.largest > 0 ? std::sqrt(std::abs(values[i]) / grid.largest) : 0;
    const std::string shade = fmt::format("class=\"{}\" fill-opacity=\"{:.2f}\"", values[i] < 0 ? "f1" : "f0", opacity);
    const std::string square = fmt::format("M{} {}h1v1h-1z", i % columns, i / columns), number = fmt::format("{:.2g}", values[i]);
    if (values[i] != 0) paths[std::isfinite(values[i]) ? shade : "class=\"muted\""] += square;
    if (with_numbers)
      numbers += svg_text(grid.x(i % columns), grid.y(i / columns) + 5, opacity > 0.65 ? "background" : "ink", kMiddle,
          number.size() > 6 ? fmt::format("{:.0e}", values[i]) : number);
  }
  std::string svg;
  for (const auto& [attributes, path] : paths) svg += "<path d=\"" + path + "\" " + attributes + "/>\n";
  const double width = grid.width * static_cast<double>(columns), height = grid.height * static_cast<double>(values.size() / columns);
  return fmt::format("<g transform=\"translate({:.6g} {:.6g}) scale({:.6g} {:.6g})\" shape-rendering=\"crispEdges\">\n{}</g>\n", grid.left,
             grid.top, grid.width, grid.height, svg) +
         svg_rectangle(grid.left, grid.top, width, height, "class=\"axis\" fill=\"none\"") + numbers;
}

// The labels of a side. If they are too close, only every 2nd, 5th, 10th ... is drawn.
std::string draw_side(const Grid& grid, const std::vector<std::string>& labels, bool is_top, bool turned, double room) {
  std::string svg;
  size_t every = 1;
  for (const size_t more : {2, 5, 10, 20, 50})
    if ((is_top ? grid.width : grid.height) * static_cast<double>(every) < room) every = more;
  for (size_t i = 0; i < labels.size(); i += every) {
    const double x = is_top ? grid.x(i) : grid.left - 6, y = is_top ? grid.top - 6 : grid.y(i) + 5;
    if (turned) svg += svg_text(x + 5, y, "muted", fmt::format(" transform=\"rotate(-90 {:.6g} {:.6g})\"", x + 5, y), labels[i]);
    else svg += svg_text(x, y, "muted", is_top ? kMiddle : kEnd, labels[i]);
  }
  return svg;
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

std::string svg_line(double x1, double y1, double x2, double y2, const std::string& classes) {
  return fmt::format("<line x1=\"{:.6g}\" y1=\"{:.6g}\" x2=\"{:.6g}\" y2=\"{:.6g}\" class=\"{}\"/>\n", x1, y1, x2, y2, classes);
}

std::string svg_rectangle(double x, double y, double width, double height, const std::string& attributes) {
  return fmt::format("<rect x=\"{:.6g}\" y=\"{:.6g}\" width=\"{:.6g}\" height=\"{:.6g}\" {}/>\n", x, y, width, height, attributes);
}

std::string fitting(const std::string& text, double width) {
  if (width_of(text) <= width) return text;
  std::string cut = text;
  while (!cut.empty() && width_of(cut) > width - 8) cut.resize(complete_utf8_prefix(std::string_view(cut).substr(0, cut.size() - 1)));
  return cut + "…";
}

// Differences of logarithms, because the quotient of the largest and the smallest drawable value is beyond f64.
double Axis::share(double value) const {
  return log ? (std::log(value) - std::log(low)) / (std::log(high) - std::log(low)) : (value - low) / (high - low);
}

Axis axis_around(std::span<const double> values, bool log, double quotient) {
  if (values.empty()) return log ? Axis{1, 10, true} : Axis{0, 1};
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  double low = *least, high = *greatest;
  // Values that differ only by rounding, for example averages of a constant, count as one.
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
  std::vector<Tick> result;
  const double slack = axis.log ? 1e-9 * axis.low : 1e-6 * (axis.high - axis.low) / count;  // for rounding
  const double least = axis.low - slack, most = axis.high + slack;
  // Tries 1, 2 and 5 times each power of ten (whole axes: of two), then every power, every second power, until the ticks are few enough.
  const double base = axis.whole ? 2 : 10;
  for (int every = axis.whole; axis.log && axis.high / base >= axis.low; ++every) {
    result.clear();
    for (auto exponent = static_cast<int>(std::log(axis.low) / std::log(base)) - 1; std::pow(base, exponent) <= most; ++exponent)
      for (const int factor : {1, 2, 5}) {
        if (every > 0 && (factor > 1 || exponent % every)) continue;
        // Read from decimal text, because powers of ten below 1 have no exact value.
        const double value = axis.whole ? std::pow(2, exponent) : std::stod(fmt::format("{}e{}", factor, exponent));
        if (value >= least && value <= most) result.push_back({value, axis.whole ? exact(value) : label(value, value, value / factor)});
      }
    if (static_cast<int>(result.size()) <= count) return result;
  }
  const double distance = (axis.high - axis.low) / count, power = std::pow(10.0, decade(distance));
  double step = axis.whole ? std::max(power, 1.0) : power;
  for (const double factor : {2.0, 5.0, 10.0})
    if (step < distance * (1 - 1e-9)) step = factor * power;
  for (double i = std::ceil(least / step); i * step <= most; ++i)
    result.push_back({i * step, label(i * step, std::max(std::abs(axis.low), std::abs(axis.high)), step)});
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
  // Pictures in a row reserve the same height for legends; otherwise their axes would not be level.
  double last_row = 0;
  for (const Panel& panel : chart.panels) {
    double y = 20;
    draw_legend(chart, panel, y);
    last_row = std::max(last_row, y);
  }
  for (const Panel& panel : chart.panels) pictures.push_back(draw_panel(chart, panel, last_row + 16));
  return pictures;
}

int64_t block_of(const HeatMap& map) { return std::max<int64_t>(1, (std::max(map.rows(), map.columns) + kMaxCells - 1) / kMaxCells); }

Picture picture_of(const HeatMap& given) {
  constexpr double kSide = 400, kCell = 64, kLine = 16;
  const HeatMap map = shrunk(given, block_of(given));
  const int64_t most = std::max(map.rows(), map.columns);
  // Cells are squares, unless one side has many more cells than the other.
  const auto extent = [&](int64_t count) {
    return std::max(std::min(kSide / static_cast<double>(most), kCell), std::min(24.0, kSide / static_cast<double>(count)));
  };
  double low = 0, high = 0, row_label = 0, column_label = 0;
  for (const double value : map.values)
    if (std::isfinite(value)) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  for (const std::string& label : map.row_labels) row_label = std::max(row_label, width_of(label));
  for (const std::string& label : map.column_labels) column_label = std::max(column_label, width_of(label));
  // Words that are too wide are turned; numbers are thinned out.
  const bool turned = !given.column_labels.empty() && column_label + 4 > extent(map.columns);
  const Grid grid{32 + row_label, 54 + (turned ? column_label : kLine), extent(map.columns), extent(map.rows()), std::max(-low, high)};
  const double right = grid.left + grid.width * static_cast<double>(map.columns);
  double bottom = grid.top + grid.height * static_cast<double>(map.rows());
  std::string svg = svg_text(0, 20, "ink strong", "", map.title) + svg_text((grid.left + right) / 2, 44, "muted", kMiddle, map.column_name);
  svg += fmt::format("<g transform=\"translate(14 {:.6g}) rotate(-90)\">{}</g>\n", (grid.top + bottom) / 2,
      svg_text(0, 0, "muted", kMiddle, map.row_name));
  svg += draw_side(grid, map.column_labels, true, turned, turned ? kLine : column_label + 4) +
         draw_side(grid, map.row_labels, false, false, kLine);
  svg += draw_cells(grid, map.values, static_cast<size_t>(map.columns), most <= kWithNumbers);
  for (size_t i = 0; most <= kWithTitles && i < map.values.size(); ++i) {  // invisible cells above the others, for the pointer
    const size_t row = i / map.column_labels.size(), column = i % map.column_labels.size();
    svg += fmt::format("<path d=\"M{:.6g} {:.6g}h{:.6g}v{:.6g}h{:.6g}z\" opacity=\"0\"><title>{}, {}: {:.4g}</title></path>\n",
        grid.x(column) - grid.width / 2, grid.y(row) - grid.height / 2, grid.width, grid.height, -grid.width, escaped(map.row_labels[row]),
        escaped(map.column_labels[column]), map.values[i]);
  }
  // The legend: cells with their values, in even steps of opacity.
  std::vector<double> shades;
  const auto root = [](double value) { return std::copysign(std::sqrt(std::abs(value)), value); };
  for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    const double place = root(low) + share * (root(high) - root(low));
    shades.push_back(std::copysign(place * place, place));
  }
  if (most > kWithNumbers) svg += draw_cells({grid.left, bottom + 14, kCell, 20, grid.largest}, shades, shades.size(), true);
  if (most > kWithNumbers) bottom += 30;
  return {.name = map.title, .width = std::max({right + 8, 1.1 * width_of(map.title), 4 * kCell}), .height = bottom + 12, .elements = svg};
}

}  // namespace ricci::apps
