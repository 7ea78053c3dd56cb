#include "apps/lab/drawing/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/text/utf8.h"

namespace ricci::apps {
namespace {

constexpr double kWidth = 960, kEdge = 28, kLeft = 58, kGap = 34, kLetter = 7.4;  // kLetter: width of a letter of 13 units
constexpr double kTitle = 58, kLegendRow = 24, kHead = 34, kFoot = 46, kTall = 340, kShort = 170;

struct Placed {
  double x, y;
};

double width_of(const std::string& text) { return kLetter * static_cast<double>(count_characters(text)); }

// Longer names lose their middle.
std::string fitting(const std::string& text) {
  if (text.size() <= 60) return text;
  const auto continues = [&](size_t i) { return (text[i] & 0xc0) == 0x80; };
  size_t head = 28, tail = text.size() - 28;
  while (head > 0 && continues(head)) --head;
  while (tail < text.size() && continues(tail)) ++tail;
  return text.substr(0, head) + "…" + text.substr(tail);
}

// Entries from left to right, in as many rows as they need.
std::vector<Placed> place_legend(const Chart& chart) {
  std::vector<Placed> places;
  double x = kEdge, y = kTitle + 10;
  for (const LegendEntry& entry : chart.legend) {
    const double width = 34 + width_of(fitting(entry.name)) + 22;
    if (x > kEdge && x + width > kWidth - kEdge) {
      x = kEdge;
      y += kLegendRow;
    }
    places.push_back({x, y});
    x += width;
  }
  return places;
}

// The dashes of the curves of a round. Only those of validation have dashes; dots tell the rounds apart: none, one, and pairs of them.
std::string dashes(int round, bool dashed) {
  static constexpr const char* kPatterns[kRounds][2] = {{"", "7 4"}, {"0.1 4.5", "9 5 0.1 5"}, {"0.1 4.5 0.1 10", "9 5 0.1 4.5 0.1 5"}};
  const char* const pattern = kPatterns[round][dashed];
  return *pattern ? fmt::format(" stroke-dasharray=\"{}\"", pattern) : "";
}
std::string stroke(int colour) { return colour < 0 ? "plain" : fmt::format("c{}", colour % kColours); }

Placed place(const PanelBox& box, const Point& point) {
  return {box.left + box.width * box.x.share(point.x), box.top + box.height * (1 - box.y.share(point.y))};
}

std::string polyline(const PanelBox& box, const std::vector<Point>& points, const std::string& attributes) {
  return "<path d=\"" + path_through(thinned(points, static_cast<int>(box.width)), box) + "\" " + attributes + "/>\n";
}

std::string draw_axes(const PanelBox& box, const std::string& x_name) {
  std::string svg;
  for (const Tick& tick : ticks(box.y, box.height > 200 ? 7 : 4)) {
    const double y = place(box, {box.x.low, tick.value}).y;
    svg += svg_line(box.left, y, box.left + box.width, y, "grid");
    svg += svg_text(box.left - 8, y + 4.5, "muted", " text-anchor=\"end\"", tick.label);
  }
  const double bottom = box.top + box.height;
  svg += svg_line(box.left, bottom, box.left + box.width, bottom, "axis");
  for (const Tick& tick : ticks(box.x, std::max(4, static_cast<int>(box.width / 85)))) {
    const double x = place(box, {tick.value, box.y.low}).x;
    svg += svg_line(x, bottom, x, bottom + 5, "axis");
    svg += svg_text(x, bottom + 20, "muted", " text-anchor=\"middle\"", tick.label);
  }
  return svg + svg_text(box.left + box.width / 2, bottom + 39, "muted", " text-anchor=\"middle\"", x_name);
}

std::string draw_curve(const PanelBox& box, const Curve& curve) {
  std::string svg;
  const std::string colour = stroke(curve.colour);
  if (!curve.raw.empty()) svg += polyline(box, curve.raw, "class=\"raw " + colour + "\"");
  svg += polyline(box, curve.points, "class=\"curve " + colour + "\"" + dashes(round_of(curve.colour), curve.dashed));
  const bool few = curve.dashed && curve.points.size() <= 60;  // few measurements: each shows where it was made
  for (size_t i = 0; (few || curve.marked) && i < curve.points.size(); ++i) {
    if (!box.y.shows(curve.points[i].y)) continue;
    const Placed at = place(box, curve.points[i]);
    svg += fmt::format(
        "<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{}\" class=\"f{}\"/>\n", at.x, at.y, curve.marked ? 4 : 3.2, curve.colour % kColours);
  }
  return svg;
}

struct Area {
  double left, top, right, bottom;
  bool meets(const Area& other) const { return left < other.right && other.left < right && top < other.bottom && other.top < bottom; }
};

// The label of a dot stands where it meets no other label and no dot, if there is such a place: beside it, above or below.
std::string draw_labels(const PanelBox& box, const Panel& panel) {
  constexpr double kAscent = 11, kDescent = 3, kAside = 9;
  std::vector<Area> taken;
  for (const Curve& curve : panel.curves)
    for (size_t i = 0; i < curve.labels.size(); ++i) {
      const Placed dot = place(box, curve.points[i]);
      taken.push_back({dot.x - 5, dot.y - 5, dot.x + 5, dot.y + 5});
    }
  std::string svg;
  for (const Curve& curve : panel.curves)
    for (size_t i = 0; i < curve.labels.size(); ++i) {
      const Placed dot = place(box, curve.points[i]);
      const std::string label = fitting(curve.labels[i]);
      const double width = width_of(label), right = dot.x + kAside, left = dot.x - kAside - width;
      const auto area_at = [&](double x, double y) { return Area{x, y - kAscent, x + width, y + kDescent}; };
      const auto is_free = [&](const Area& area) {
        const bool inside =
            area.left >= box.left && area.right <= kWidth - kEdge / 2 && area.top >= box.top - 8 && area.bottom <= box.top + box.height;
        return inside && std::none_of(taken.begin(), taken.end(), [&](const Area& other) { return area.meets(other); });
      };
      std::vector<Area> areas;
      for (const double y : {4.5, -8.0, 17.0, -21.0, 30.0, -34.0, 43.0})
        for (const double x : {right, left}) areas.push_back(area_at(x, dot.y + y));
      const auto found = std::find_if(areas.begin(), areas.end(), is_free);
      const Area chosen = found == areas.end() ? areas[0] : *found;
      taken.push_back(chosen);
      svg += svg_text(chosen.left, chosen.bottom - kDescent, "ink", "", label);
    }
  return svg;
}

// What lies outside: marks at the borders, and words at the right of the line of the title.
std::string draw_outside(const PanelBox& box, const Panel& panel) {
  const Outside outside = outside_of(panel, box.y);
  const std::string words = words_of(outside, false);
  if (words.empty()) return "";
  const double room = box.width + kLeft - width_of(panel.title + panel.unit) - 30;
  return marks_of(panel, box) + svg_text(box.left + box.width, box.top - 14, "muted", " text-anchor=\"end\"",
                                    width_of(words) <= room ? words : words_of(outside, true));
}

std::string draw_panel(const PanelBox& box, const Panel& panel, const std::string& x_name) {
  std::string svg = fmt::format(
      "<text x=\"{:.6g}\" y=\"{:.6g}\" class=\"ink\" font-weight=\"600\">{}", box.left - kLeft, box.top - 14, escaped(panel.title));
  if (!panel.unit.empty()) svg += "<tspan class=\"muted\" font-weight=\"400\" dx=\"8\">" + escaped(panel.unit) + "</tspan>";
  svg += "</text>\n" + draw_axes(box, x_name);
  for (const Curve& curve : panel.curves) svg += draw_curve(box, curve);
  return svg + draw_labels(box, panel) + draw_outside(box, panel);
}

std::string draw_legend(const Chart& chart) {
  std::string svg;
  const std::vector<Placed> places = place_legend(chart);
  for (size_t i = 0; i < places.size(); ++i) {
    const auto& [x, y] = places[i];
    const LegendEntry& entry = chart.legend[i];
    svg += svg_line(x, y - 4.5, x + 26, y - 4.5, "curve " + stroke(entry.colour),
        dashes(entry.colour < 0 ? entry.round : round_of(entry.colour), entry.dashed));
    svg += svg_text(x + 34, y, "ink", "", fitting(entry.name));
  }
  return svg;
}

}  // namespace

Layout layout_of(const Chart& chart) {
  const std::vector<Placed> legend = place_legend(chart);
  Layout layout{kWidth, legend.empty() ? kTitle : legend.back().y + 14, {}};
  const Axis x = common_x_axis(chart);
  for (size_t i = 0; i < chart.panels.size();) {
    // The first panel has a row of its own, the others go in rows of up to three.
    const size_t max_columns = chart.panels.size() - 1 == 4 ? 2 : 3, columns = i == 0 ? 1 : std::min(chart.panels.size() - i, max_columns);
    const double height = i == 0 ? kTall : kShort, top = layout.height + kHead;
    const double width = (kWidth - 2 * kEdge - kGap * static_cast<double>(columns - 1)) / static_cast<double>(columns);
    for (size_t c = 0; c < columns; ++c, ++i)
      layout.boxes.push_back({kEdge + static_cast<double>(c) * (width + kGap) + kLeft, top, width - kLeft, height,
          x_axis_of(chart.panels[i], chart, x), y_axis_of(chart.panels[i], chart)});
    layout.height = top + height + kFoot;
  }
  layout.height += 10;
  return layout;
}

std::string to_svg(const Chart& chart, Theme theme, bool with_style) {
  const Layout layout = layout_of(chart);
  std::string rules = ".grid,.axis{stroke-width:1} .curve,.raw{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round} "
                      ".raw{stroke-width:1;opacity:.35} text{font-variant-numeric:tabular-nums}\n";
  if (with_style) rules += style_of(theme);
  std::string svg = svg_head(layout.width, layout.height, 13, chart.title, rules);
  svg += svg_text(kEdge, 36, "ink", " font-size=\"20\" font-weight=\"600\"", fitting(chart.title)) + draw_legend(chart);
  for (size_t i = 0; i < chart.panels.size(); ++i) svg += draw_panel(layout.boxes[i], chart.panels[i], x_name_of(chart.panels[i], chart));
  return svg + "</svg>\n";
}

}  // namespace ricci::apps
