#include <fmt/format.h>

#include <algorithm>

#include "apps/lab/drawing/svg.h"

namespace ricci::apps {
namespace {

constexpr double kMarkDistance = 6;  // units between two marks of a curve

struct Spot {
  double x, share;  // share: of the height, 0 at the lower border
};

// The part of the line from a to b, as shares of its length, that lies inside; first > last: none.
struct Part {
  double first, last;
};
constexpr double kLow = -1e-9, kHigh = 1 + 1e-9;
bool is_inside(const Spot& a) { return a.share >= kLow && a.share <= kHigh; }
Part part_inside(const Spot& a, const Spot& b) {
  const double rise = b.share - a.share;
  if (rise == 0) return is_inside(a) ? Part{0, 1} : Part{1, 0};
  const auto [enters, leaves] = std::minmax({(kLow - a.share) / rise, (kHigh - a.share) / rise});
  return {std::max(enters, 0.0), std::min(leaves, 1.0)};
}

}  // namespace

std::string marks_of(const Panel& panel, const PanelBox& box) {
  std::string svg;
  for (const Curve& curve : panel.curves) {
    double last[2] = {-kMarkDistance, -kMarkDistance};  // below, above
    for (const Point& point : measured(curve)) {
      if (box.y.shows(point.y)) continue;
      const bool above = box.y.share(point.y) > 1;
      const double x = box.left + box.width * box.x.share(point.x), y = above ? box.top : box.top + box.height, depth = above ? 8 : -8;
      if (x < last[above] + kMarkDistance) continue;
      last[above] = x;
      svg += fmt::format("<path d=\"M{:.2f} {:.2f}l4.5 {}h-9z\" class=\"outside f{}\"/>\n", x, y, depth, curve.colour % kColours);
    }
  }
  return svg;
}

std::string path_through(const std::vector<Point>& points, const PanelBox& box) {
  std::string path;
  const auto add = [&](char verb, double x, double share) {
    path += fmt::format("{}{:.2f} {:.2f}", verb, x, box.top + box.height * (1 - share));
  };
  const auto spot = [&](const Point& point) { return Spot{box.left + box.width * box.x.share(point.x), box.y.share(point.y)}; };
  bool pen_is_there = false;  // the path ends at the point before
  for (size_t i = 0; i < points.size(); ++i) {
    const Spot to = spot(points[i]);
    if (i == 0) {
      if ((pen_is_there = is_inside(to))) add('M', to.x, to.share);
      continue;
    }
    const Spot from = spot(points[i - 1]);
    const Part part = part_inside(from, to);
    if (part.first > part.last) continue;
    // Where the line is cut it stands on the border, whatever rounding made of values that are far away.
    const auto cut = [&](double along, const Spot& end) { return Spot{from.x + along * (to.x - from.x), end.share > 0.5 ? 1.0 : 0.0}; };
    const Spot first = is_inside(from) ? from : cut(part.first, from), last = is_inside(to) ? to : cut(part.last, to);
    if (!pen_is_there) add('M', first.x, first.share);
    add('L', last.x, last.share);
    pen_is_there = is_inside(to);
  }
  if (points.size() == 1 && pen_is_there) path += "h0.01";  // a line of no length shows its round end
  return path;
}

}  // namespace ricci::apps
