// Intervals around the points of a curve, and the layout for phones.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "apps/lab/drawing/svg.h"

using namespace ricci::apps;

namespace {

Chart chart_of(const std::vector<Point>& points, const std::vector<double>& half_widths) {
  return {.title = "c", .x_name = "x", .panels = {{"loss", "", {{.name = "a", .points = points, .half_widths = half_widths}}}}};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string place(const PanelBox& box, double x, double y) { return fmt::format("{:.2f} {:.2f}", box.x_at(x), box.y_at(y)); }

}  // namespace

TEST_CASE("intervals: a band goes along the upper ends and back along the lower ones") {
  const Chart chart = chart_of({{1, 5}, {2, 4}, {3, 3}}, {0.5, 0.25, 0.125});
  const PanelBox box = layout_of(chart).boxes[0];
  CHECK(contains(to_svg(chart, Theme::light),
      fmt::format("<path d=\"M{}L{}L{}L{}L{}L{}Z\" class=\"band f0\"/>", place(box, 1, 5.5), place(box, 2, 4.25), place(box, 3, 3.125),
          place(box, 3, 2.875), place(box, 2, 3.75), place(box, 1, 4.5))));
  CHECK(!contains(to_svg(chart_of({{1, 5}, {2, 4}}, {}), Theme::light), "class=\"band"));
}

TEST_CASE("intervals: a single point has a bar, and lies within its axes") {
  const Chart chart = chart_of({{4, 5}}, {0.5});
  const PanelBox box = layout_of(chart).boxes[0];
  CHECK(contains(
      to_svg(chart, Theme::light), fmt::format("<path d=\"M{}L{}\" class=\"curve c0\"/>", place(box, 4, 5.5), place(box, 4, 4.5))));
  CHECK(box.y.low <= 4.5);
  CHECK(box.y.high >= 5.5);
  Chart two = chart_of({{4, 5}}, {});
  two.panels[0].curves.push_back({.name = "b", .colour = 1, .points = {{5, 6}}});
  const Axis x = layout_of(two).boxes[0].x;
  CHECK(x.low > 0);
  CHECK(x.low < 4);
  CHECK(x.high > 5);
  two.panels[0].curves.push_back({.name = "c", .colour = 2, .points = {{4, 5}, {5, 6}}});
  CHECK(layout_of(two).boxes[0].x.low == 0);
}

TEST_CASE("intervals: wide ones widen the axis by the range of the values, and end at the border") {
  const Chart chart = chart_of({{1, 5}, {2, 4}}, {100, 0.1});
  const PanelBox box = layout_of(chart).boxes[0];
  CHECK(box.y.high < 6.5);
  CHECK(box.y.low > 2.5);
  CHECK(contains(to_svg(chart, Theme::light), fmt::format("M{:.2f} {:.2f}L", box.x_at(1), box.top)));
}

TEST_CASE("layout: on a phone the panels are below each other, each over the whole width") {
  Chart chart = chart_of({{1, 5}, {2, 4}}, {});
  for (int i = 0; i < 3; ++i) chart.panels.push_back(chart.panels[0]);
  const Layout phone = layout_of(chart, Screen::phone), page = layout_of(chart);
  CHECK(phone.width == 400);
  CHECK(page.width == 960);
  for (size_t i = 1; i < 4; ++i) {
    CHECK(phone.boxes[i].left == phone.boxes[0].left);
    CHECK(phone.boxes[i].width == phone.boxes[0].width);
    CHECK(phone.boxes[i].top > phone.boxes[i - 1].top + phone.boxes[i - 1].height);
  }
  CHECK(phone.boxes[0].left + phone.boxes[0].width <= 400);
  CHECK(page.boxes[1].top == page.boxes[2].top);
  CHECK(contains(to_svg(chart, Theme::light, true, Screen::phone), "viewBox=\"0 0 400 "));
}
