#include "apps/lab/drawing/svg.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/text/utf8.h"

namespace ricci::apps {
namespace {

// The sizes that depend on the screen. A title has at most `letters` letters.
struct Frame {
  double width = 960, edge = 28, tall = 340;
  size_t letters = 60;
  int title = 20;  // font size
};
Frame frame_of(Screen screen) { return screen == Screen::phone ? Frame{400, 10, 240, 44, 15} : Frame{}; }

constexpr double kLeft = 58, kGap = 34, kLetter = 7.4;  // kLetter: width of a letter of 13 units
constexpr double kTitle = 58, kLegendRow = 24, kHead = 34, kFoot = 46, kShort = 170;

double width_of(const std::string& text) { return kLetter * static_cast<double>(count_characters(text)); }

// Longer names lose their middle.
std::string fitting(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  const auto continues = [&](size_t i) { return (text[i] & 0xc0) == 0x80; };
  size_t head = most / 2 - 2, tail = text.size() - head;
  while (head > 0 && continues(head)) --head;
  while (tail < text.size() && continues(tail)) ++tail;
  return text.substr(0, head) + "…" + text.substr(tail);
}

// Entries from left to right, in the rows that they need.
std::vector<Point> place_legend(const Chart& chart, const Frame& frame) {
  std::vector<Point> places;
  double x = frame.edge, y = kTitle + 10;
  for (const LegendEntry& entry : chart.legend) {
    const double width = 34 + width_of(fitting(entry.name, frame.letters)) + 22;
    if (x > frame.edge && x + width > frame.width - frame.edge) {
      x = frame.edge;
      y += kLegendRow;
    }
    places.push_back({x, y});
    x += width;
  }
  return places;
}

// The dashes of the curves of a round. Only curves of validation have dashes; dots distinguish the rounds: none, one, and pairs of them.
std::string dashes(int round, bool dashed) {
  static constexpr const char* kPatterns[kRounds][2] = {{"", "7 4"}, {"0.1 4.5", "9 5 0.1 5"}, {"0.1 4.5 0.1 10", "9 5 0.1 4.5 0.1 5"}};
  const char* const pattern = kPatterns[round][dashed];
  return *pattern ? fmt::format(" stroke-dasharray=\"{}\"", pattern) : "";
}
std::string stroke(int colour) { return colour < 0 ? "plain" : fmt::format("c{}", colour % kColours); }

std::string polyline(const PanelBox& box, const std::vector<Point>& points, const std::string& attributes) {
  return "<path d=\"" + path_through(thinned(points, static_cast<int>(box.width)), box) + "\" " + attributes + "/>\n";
}

std::string draw_axes(const PanelBox& box, const std::string& x_name) {
  std::string svg;
  for (const Tick& tick : ticks(box.y, box.height > 200 ? 7 : 4)) {
    const double y = box.y_at(tick.value);
    svg += svg_line(box.left, y, box.left + box.width, y, "grid");
    svg += svg_text(box.left - 8, y + 4.5, "muted", " text-anchor=\"end\"", tick.label);
  }
  const double bottom = box.top + box.height;
  svg += svg_line(box.left, bottom, box.left + box.width, bottom, "axis");
  for (const Tick& tick : ticks(box.x, std::max(4, static_cast<int>(box.width / 85)))) {
    const double x = box.x_at(tick.value);
    svg += svg_line(x, bottom, x, bottom + 5, "axis");
    svg += svg_text(x, bottom + 20, "muted", " text-anchor=\"middle\"", tick.label);
  }
  const auto letters = static_cast<size_t>((box.width + kLeft) / kLetter);
  return svg + svg_text(box.left + box.width / 2, bottom + 39, "muted", " text-anchor=\"middle\"", fitting(x_name, letters));
}

// The interval of each point, as far as the box shows it: a band, or a bar where there is one point.
std::string draw_intervals(const PanelBox& box, const Curve& curve) {
  std::string upper, lower;
  const auto y_at = [&](double value) { return box.top + box.height * (1 - std::clamp(box.y.share(value), 0.0, 1.0)); };
  for (size_t i = 0; i < curve.half_widths.size(); ++i) {
    const auto [x, y] = curve.points[i];
    upper += fmt::format("{}{:.2f} {:.2f}", i ? 'L' : 'M', box.x_at(x), y_at(y + curve.half_widths[i]));
    lower = fmt::format("L{:.2f} {:.2f}", box.x_at(x), y_at(y - curve.half_widths[i])) + lower;
  }
  if (curve.half_widths.size() == 1) return "<path d=\"" + upper + lower + "\" class=\"curve " + stroke(curve.colour) + "\"/>\n";
  return upper.empty() ? "" : fmt::format("<path d=\"{}{}Z\" class=\"band f{}\"/>\n", upper, lower, curve.colour % kColours);
}

std::string draw_curve(const PanelBox& box, const Curve& curve) {
  std::string svg = draw_intervals(box, curve);
  const std::string colour = stroke(curve.colour);
  if (!curve.raw.empty()) svg += polyline(box, curve.raw, "class=\"raw " + colour + "\"");
  svg += polyline(box, curve.points, "class=\"curve " + colour + "\"" + dashes(round_of(curve.colour), curve.dashed));
  const bool few = curve.dashed && curve.points.size() <= 60;  // few measurements: each shows where it was made
  if (!few && !curve.marked) return svg;
  for (const Point& point : curve.points)
    if (box.y.shows(point.y))
      svg += fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{}\" class=\"f{}\"/>\n", box.x_at(point.x), box.y_at(point.y),
          curve.marked ? 4 : 3.2, curve.colour % kColours);
  return svg;
}

struct Area {
  double left, top, right, bottom;
  bool meets(const Area& other) const { return left < other.right && other.left < right && top < other.bottom && other.top < bottom; }
};

// The label of a dot is where it meets no other label and no dot, if there is such a place: beside it, above or below.
std::string draw_labels(const PanelBox& box, const Panel& panel, const Frame& frame) {
  constexpr double kAscent = 11, kDescent = 3, kAside = 9;
  std::vector<Area> taken;
  const auto is_free = [&](const Area& area) {
    const bool inside = area.left >= box.left && area.right <= frame.width - frame.edge / 2 && area.top >= box.top - 8 &&
                        area.bottom <= box.top + box.height;
    return inside && std::none_of(taken.begin(), taken.end(), [&](const Area& other) { return area.meets(other); });
  };
  std::vector<std::pair<Point, std::string>> labels;  // each with its dot
  for (const Curve& curve : panel.curves)
    for (size_t i = 0; i < curve.labels.size(); ++i) {
      const double x = box.x_at(curve.points[i].x), y = box.y_at(curve.points[i].y);
      taken.push_back({x - 5, y - 5, x + 5, y + 5});
      labels.emplace_back(Point{x, y}, fitting(curve.labels[i], frame.letters));
    }
  std::string svg;
  for (const auto& [dot, label] : labels) {
    const double width = width_of(label);
    std::vector<Area> areas;
    for (const double y : {4.5, -8.0, 17.0, -21.0, 30.0, -34.0, 43.0})
      for (const double x : {dot.x + kAside, dot.x - kAside - width})
        areas.push_back({x, dot.y + y - kAscent, x + width, dot.y + y + kDescent});
    const auto found = std::find_if(areas.begin(), areas.end(), is_free);
    taken.push_back(found == areas.end() ? areas[0] : *found);
    svg += svg_text(taken.back().left, taken.back().bottom - kDescent, "ink", "", label);
  }
  return svg;
}

// Curves whose y axis leaves some values out end at the border. Triangles at the upper and lower border show where those values are, and
// words at the right of the title's line count them.
std::string draw_outside(const PanelBox& box, const Panel& panel) {
  constexpr double kMarkDistance = 6;  // units between two marks of a curve
  const Outside outside = outside_of(panel, box.y);
  const std::string words = words_of(outside, false);
  if (words.empty()) return "";
  std::string svg;
  for (const Curve& curve : panel.curves) {
    double last[2] = {-kMarkDistance, -kMarkDistance};  // below, above
    for (const Point& point : measured(curve)) {
      const bool above = box.y.share(point.y) > 1;
      const double x = box.x_at(point.x), y = above ? box.top : box.top + box.height;
      if (box.y.shows(point.y) || x < last[above] + kMarkDistance) continue;
      last[above] = x;
      svg += fmt::format("<path d=\"M{:.2f} {:.2f}l4.5 {}h-9z\" class=\"outside f{}\"/>\n", x, y, above ? 8 : -8, curve.colour % kColours);
    }
  }
  const double room = box.width + kLeft - width_of(panel.title + panel.unit) - 30;
  return svg + svg_text(box.left + box.width, box.top - 14, "muted", " text-anchor=\"end\"",
                   width_of(words) <= room ? words : words_of(outside, true));
}

std::string draw_panel(const PanelBox& box, const Panel& panel, const std::string& x_name, const Frame& frame) {
  std::string svg = fmt::format(
      "<text x=\"{:.6g}\" y=\"{:.6g}\" class=\"ink\" font-weight=\"600\">{}", box.left - kLeft, box.top - 14, escaped(panel.title));
  const double room = (box.width + kLeft) / kLetter - static_cast<double>(count_characters(panel.title));
  const std::string unit = fitting(panel.unit, static_cast<size_t>(std::max(room, 12.0)));
  if (!unit.empty()) svg += "<tspan class=\"muted\" font-weight=\"400\" dx=\"8\">" + escaped(unit) + "</tspan>";
  svg += "</text>\n" + draw_axes(box, x_name);
  for (const Curve& curve : panel.curves) svg += draw_curve(box, curve);
  return svg + draw_labels(box, panel, frame) + draw_outside(box, panel);
}

std::string draw_legend(const Chart& chart, const Frame& frame) {
  std::string svg;
  const std::vector<Point> places = place_legend(chart, frame);
  for (size_t i = 0; i < places.size(); ++i) {
    const auto& [x, y] = places[i];
    const LegendEntry& entry = chart.legend[i];
    svg += svg_line(x, y - 4.5, x + 26, y - 4.5, "curve " + stroke(entry.colour),
        dashes(entry.colour < 0 ? entry.round : round_of(entry.colour), entry.dashed));
    svg += svg_text(x + 34, y, "ink", "", fitting(entry.name, frame.letters));
  }
  return svg;
}

// ---- Paths that end where they leave the box

struct Spot {
  double x, share;  // share: of the height, 0 at the lower border
};

constexpr double kLow = -1e-9, kHigh = 1 + 1e-9;
bool is_inside(const Spot& spot) { return spot.share >= kLow && spot.share <= kHigh; }

// Both ends of the part of the line from a to b that is inside, as shares of its length. Where none does, the first is larger.
std::pair<double, double> part_inside(const Spot& a, const Spot& b) {
  const double rise = b.share - a.share;
  if (rise == 0) return is_inside(a) ? std::pair{0.0, 1.0} : std::pair{1.0, 0.0};
  const auto [enters, leaves] = std::minmax({(kLow - a.share) / rise, (kHigh - a.share) / rise});
  return {std::max(enters, 0.0), std::min(leaves, 1.0)};
}

}  // namespace

std::string path_through(const std::vector<Point>& points, const PanelBox& box) {
  std::string path;
  const auto add = [&](char verb, const Spot& spot) {
    path += fmt::format("{}{:.2f} {:.2f}", verb, spot.x, box.top + box.height * (1 - spot.share));
  };
  const auto spot = [&](const Point& point) { return Spot{box.x_at(point.x), box.y.share(point.y)}; };
  bool pen_is_there = false;  // the path ends at the point before
  for (size_t i = 1; i < points.size(); ++i) {
    const Spot start = spot(points[i - 1]), stop = spot(points[i]);
    const auto [first, last] = part_inside(start, stop);
    if (first > last) continue;
    // Where the line is cut it is on the border, whatever rounding made of values that are far away.
    const auto end_at = [&](const Spot& end, double along) {
      const double border = end.share > 0.5 ? 1 : 0;
      return is_inside(end) ? end : Spot{start.x + along * (stop.x - start.x), border};
    };
    if (!pen_is_there) add('M', end_at(start, first));
    add('L', end_at(stop, last));
    pen_is_there = is_inside(stop);
  }
  if (points.size() != 1 || !is_inside(spot(points[0]))) return path;
  add('M', spot(points[0]));
  return path + "h0.01";  // a line of no length shows its round end
}

Layout layout_of(const Chart& chart, Screen screen) {
  const Frame frame = frame_of(screen);
  const std::vector<Point> legend = place_legend(chart, frame);
  Layout layout{frame.width, legend.empty() ? kTitle : legend.back().y + 14, {}};
  const Axis common = x_axis_of(chart, "");
  for (size_t i = 0; i < chart.panels.size();) {
    // The first panel has a row of its own, the others go in rows of up to three.
    const size_t max_columns = chart.panels.size() - 1 == 4 ? 2 : 3, in_row = std::min(chart.panels.size() - i, max_columns),
                 columns = i == 0 || screen == Screen::phone ? 1 : in_row;
    const double height = i == 0 ? frame.tall : kShort, top = layout.height + kHead;
    const double width = (frame.width - 2 * frame.edge - kGap * static_cast<double>(columns - 1)) / static_cast<double>(columns);
    for (size_t c = 0; c < columns; ++c, ++i)
      layout.boxes.push_back({frame.edge + static_cast<double>(c) * (width + kGap) + kLeft, top, width - kLeft, height,
          chart.panels[i].x_name.empty() ? common : x_axis_of(chart, chart.panels[i].x_name), y_axis_of(chart.panels[i], chart)});
    layout.height = top + height + kFoot;
  }
  layout.height += 10;
  return layout;
}

std::string to_svg(const Chart& chart, Theme theme, bool with_style, Screen screen) {
  const Frame frame = frame_of(screen);
  const Layout layout = layout_of(chart, screen);
  std::string rules = ".grid,.axis{stroke-width:1} .curve,.raw{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round} "
                      ".raw{stroke-width:1;opacity:.35} .band{opacity:.15} text{font-variant-numeric:tabular-nums}\n";
  if (with_style) rules += style_of(theme);
  std::string svg = svg_head(layout.width, layout.height, 13, chart.title, rules);
  svg += svg_text(frame.edge, 36, "ink", fmt::format(" font-size=\"{}\" font-weight=\"600\"", frame.title),
             fitting(chart.title, frame.letters)) +
         draw_legend(chart, frame);
  for (size_t i = 0; i < chart.panels.size(); ++i)
    svg += draw_panel(layout.boxes[i], chart.panels[i], x_name_of(chart.panels[i], chart), frame);
  return svg + "</svg>\n";
}

}  // namespace ricci::apps
