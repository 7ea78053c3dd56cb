// Charts of single points: labels beside dots, axes around the points, ticks at whole numbers.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "apps/lab/drawing/svg.h"

using namespace ricci::apps;

namespace {

Chart scatter(const std::vector<Point>& points, const std::vector<std::string>& labels) {
  Chart chart;
  chart.title = "memory", chart.x_name = "MB", chart.scattered = true;
  chart.panels.push_back({"perplexity", "", {{.name = "runs", .points = points, .marked = true, .labels = labels}}});
  return chart;
}

// The place of the text with that content.
Point place_of(const std::string& svg, const std::string& content) {
  const size_t end = svg.find(">" + content + "</text>"), begin = svg.rfind("<text ", end);
  REQUIRE(end != svg.npos);
  const auto number = [&](const char* name) {
    return std::strtod(svg.c_str() + svg.find(name, begin) + std::string(name).size(), nullptr);
  };
  return {number("x=\""), number("y=\"")};
}

}  // namespace

TEST_CASE("labels: of dots in the same place stand below each other") {
  const std::string svg = to_svg(scatter({{10, 5}, {10, 5.01}, {10, 4.99}, {40, 9}}, {"one", "two", "three", "four"}), Theme::light);
  const std::vector<Point> places = {place_of(svg, "one"), place_of(svg, "two"), place_of(svg, "three")};
  for (size_t a = 0; a < places.size(); ++a)
    for (size_t b = 0; b < a; ++b) {
      const bool same_side = std::abs(places[a].x - places[b].x) < 1;
      if (same_side) CHECK(std::abs(places[a].y - places[b].y) >= 12);
    }
}

TEST_CASE("labels: at the right border they stand to the left of the dot") {
  const std::string svg = to_svg(scatter({{1, 1}, {2, 2}}, {"left", "a rather long name of a run"}), Theme::light);
  const Layout layout = layout_of(scatter({{1, 1}, {2, 2}}, {}));
  const PanelBox& box = layout.boxes[0];
  CHECK(place_of(svg, "left").x > box.left + box.width * box.x.share(1));
  CHECK(place_of(svg, "a rather long name of a run").x < box.left + box.width * box.x.share(2) - 100);
}

TEST_CASE("labels: a scattered chart has its x axis around the points") {
  const Axis around = layout_of(scatter({{100, 1}, {101, 2}}, {})).boxes[0].x;
  CHECK(around.low > 99);
  CHECK(around.low < 100);
  CHECK(around.high > 101);
  Chart from_zero = scatter({{100, 1}, {101, 2}}, {});
  from_zero.scattered = false;
  CHECK(layout_of(from_zero).boxes[0].x.low == 0);
}

TEST_CASE("labels: ticks at whole numbers only") {
  const auto values = [](const Axis& axis) {
    std::vector<double> all;
    for (const Tick& tick : ticks(axis, 10)) all.push_back(tick.value);
    return all;
  };
  CHECK(values({.low = 0, .high = 4}).size() == 9);
  CHECK(values({.low = 0, .high = 4, .whole = true}) == std::vector<double>{0, 1, 2, 3, 4});
  CHECK(ticks({.low = 0, .high = 4, .whole = true}, 10)[1].label == "1");
}
