// Axes have ticks at round numbers. Charts show intervals around points and labels next to dots, and have a layout for phones. Heat maps
// are tables as pictures. A PNG has the checksums of its format, because otherwise other readers would refuse it.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <zlib.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "apps/lab/drawing/chart.h"
#include "apps/lab/drawing/heat_map.h"
#include "apps/lab/drawing/svg.h"
#include "tests/data/files.h"

using namespace ricci::apps;
using namespace test_data;

namespace {

std::string labels_of(const Axis& axis, int most) {
  std::string text;
  for (const Tick& tick : ticks(axis, most)) text += (text.empty() ? "" : " ") + tick.label;
  return text;
}

Chart chart_of(const std::vector<Point>& points, const std::vector<double>& half_widths) {
  return {.title = "c", .x_name = "x", .panels = {{"loss", "", {{.name = "a", .points = points, .half_widths = half_widths}}}}};
}

std::string place(const PanelBox& box, double x, double y) { return fmt::format("{:.2f} {:.2f}", box.x_at(x), box.y_at(y)); }

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

uint32_t number_at(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes.at(at + i));
  return value;
}

}  // namespace

TEST_CASE("axis: linear ticks stand at round numbers and their labels agree in decimals and unit") {
  CHECK(labels_of({0, 1}, 5) == "0 0.2 0.4 0.6 0.8 1.0");
  CHECK(labels_of({0, 300}, 4) == "0 100 200 300");
  CHECK(labels_of({1.37, 4.62}, 7) == "1.5 2.0 2.5 3.0 3.5 4.0 4.5");
  CHECK(labels_of({0, 1800}, 8) == "0 500 1,000 1,500");
  CHECK(labels_of({0, 25000}, 6) == "0 5k 10k 15k 20k 25k");
  CHECK(labels_of({0, 2.4e6}, 6) == "0 0.5M 1.0M 1.5M 2.0M");
  CHECK(labels_of({0, 6e-4}, 4) == "0 2e-4 4e-4 6e-4");
  CHECK(labels_of({6.1, 13.9}, 4) == "8 10 12");
  CHECK(labels_of({-2, 2}, 5) == "-2 -1 0 1 2");
  CHECK(labels_of({3.001, 3.002}, 6) == "3.0010 3.0012 3.0014 3.0016 3.0018 3.0020");
}

TEST_CASE("axis: logarithmic ticks") {
  CHECK(labels_of({0.1, 100, true}, 10) == "0.1 0.2 0.5 1 2 5 10 20 50 100");
  CHECK(labels_of({0.1, 100, true}, 5) == "0.1 1 10 100");
  CHECK(labels_of({2, 6, true}, 6) == "2 3 4 5 6");  // less than a decade
  CHECK(labels_of({1e-5, 1e-3, true}, 3) == "1e-5 1e-4 0.001");
}

TEST_CASE("axis: for any range there are ticks inside it, ascending, not too many, with labels of their own") {
  for (const double low : {-7.3e5, -1.0, 0.0, 1e-9, 0.37, 12345.678})
    for (const double width : {1e-6, 0.013, 1.0, 777.0, 3.1e8})
      for (int most = 4; most <= 12; ++most) {
        if (width < 1e-6 * std::abs(low)) continue;  // labels of 16 digits help nobody
        const Axis axis{low, low + width};
        const std::vector<Tick> all = ticks(axis, most);
        CHECK(all.size() >= 2);
        CHECK(static_cast<int>(all.size()) <= most + 1);
        for (size_t i = 0; i < all.size(); ++i) {
          CHECK(axis.share(all[i].value) >= -1e-5);
          CHECK(axis.share(all[i].value) <= 1 + 1e-5);
          if (i) CHECK(all[i].label != all[i - 1].label);
        }
      }
}

TEST_CASE("axis: ranges hold all values, also a single one or none") {
  const auto around = [](std::vector<double> values, bool log = false) { return axis_around(values, log, true); };
  CHECK(around({}).low < around({}).high);
  CHECK(around({0}).low < 0);
  CHECK(around({5}).low < 5);
  CHECK(around({5}).high > 5);
  CHECK(around({5}, true).low == 2.5);
  CHECK(around({1e-3, 1e-3 * (1 + 1e-15)}).high == doctest::Approx(1.5e-3));
  CHECK(around({1, 10}).low == 0);  // as the least is far below the greatest
  CHECK(around({8, 10}).low == doctest::Approx(7.92));
  CHECK(around({8, 10}).high == doctest::Approx(10.08));
  CHECK(around({1, 100}, true).low == doctest::Approx(std::pow(100, -0.04)));
  CHECK(axis_around(std::vector<double>{0, 300}, false, false).high == 300);
}

TEST_CASE("axis: ticks at given places, where their labels have room") {
  CHECK(labels_of({.low = 32, .high = 64, .log = true, .at = {32, 64}}, 6) == "32 64");
  CHECK(labels_of({.low = 128, .high = 16384, .log = true, .at = {128, 512, 1024, 16384}}, 6) == "128 512 1,024 16,384");
  CHECK(labels_of({.low = 100, .high = 1000, .log = true, .at = {100, 101, 1000}}, 10) == "100 200 500 1,000");
}

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

TEST_CASE("png: chunks with right checksums that hold the pixels") {
  const std::string png = to_png(2, {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {250, 251, 252}, {0, 0, 0}, {255, 255, 255}});
  REQUIRE(png.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  std::string kinds, pixels(64, 'x');
  for (size_t at = 8; at < png.size(); at += 12 + number_at(png, at)) {
    const uint32_t size = number_at(png, at);
    const std::string checked = png.substr(at + 4, 4 + size);
    CHECK(number_at(png, at + 8 + size) == ::crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size())));
    kinds += checked.substr(0, 4);
    if (checked.starts_with("IHDR")) CHECK(checked.substr(4) == std::string("\0\0\0\2\0\0\0\3\x08\x02\0\0\0", 13));
    uLongf room = pixels.size();
    if (checked.starts_with("IDAT")) {
      REQUIRE(
          ::uncompress(reinterpret_cast<Bytef*>(pixels.data()), &room, reinterpret_cast<const Bytef*>(checked.data() + 4), size) == Z_OK);
      pixels.resize(room);
    }
  }
  CHECK(kinds == "IHDRIDATIEND");
  CHECK(pixels == std::string("\0\1\2\3\4\5\6\0\7\10\11\372\373\374\0\0\0\0\377\377\377", 21));
  CHECK(to_data_address("M") == "data:image/png;base64,TQ==");
  CHECK(to_data_address("Ma") == "data:image/png;base64,TWE=");
  CHECK(to_data_address("Man\xff") == "data:image/png;base64,TWFu/w==");
  CHECK(error_of([] { to_png(2, {{1, 2, 3}}); }) == "png: 1 pixels in rows of 2");
}

TEST_CASE("heat map: colours go with the root of the share, from white; what is not finite is grey") {
  const ColourScale scale = scale_of({-4, 1, 0.5, std::nan(""), INFINITY});
  CHECK(scale.low == -4);
  CHECK(scale.high == 1);
  CHECK(scale.colour_of(0) == Colour{255, 255, 255});
  CHECK(scale.colour_of(-4) == Colour{0x4a, 0x1d, 0x00});
  CHECK(ColourScale{0, 9}.colour_of(9) == Colour{0x08, 0x24, 0x40});
  CHECK(ColourScale{0, 9}.colour_of(1) == Colour{0x9a, 0xd4, 0xf5});  // a third of the way is the second of four colours
  CHECK(scale.colour_of(std::nan("")) == scale.colour_of(-INFINITY));
  CHECK(scale_of({3, 5}).low == 0);
  CHECK(ColourScale{}.colour_of(0) == Colour{255, 255, 255});
}

// Each cell has a colour of the legend, at the place of its value.
TEST_CASE("heat map: the legend goes from the least to the greatest value as evenly as the colours do") {
  const ColourScale even{-1, 4};  // roots from -1 to 2
  CHECK(even.value_at(0) == -1);
  CHECK(even.value_at(1) == 4);
  CHECK(even.value_at(0.5) == 0.25);
  CHECK(even.value_at(1.0 / 3) == doctest::Approx(0));
  CHECK(ColourScale{}.value_at(0.5) == 0);
  const ColourScale scale = scale_of({-0.0313, 4.58});  // squared distances under a metric that is not positive
  const double below = std::sqrt(0.0313) / (std::sqrt(0.0313) + std::sqrt(4.58));
  CHECK(below > 0.07);  // what is below 0 has its part of the legend
  CHECK(scale.colour_of(scale.value_at(below)) == Colour{255, 255, 255});
  for (const double value : {-0.0313, -0.01, -0.001, 0.001, 0.1, 2.0, 4.58}) {
    const double root = std::copysign(std::sqrt(std::abs(value)), value), place = below + root / (std::sqrt(0.0313) + std::sqrt(4.58));
    CHECK(scale.value_at(place) == doctest::Approx(value).epsilon(1e-9));
    CHECK(scale.colour_of(scale.value_at(place)) == scale.colour_of(value));
  }
  const std::string svg = to_svg(HeatMap{"", "", "", {}, {}, 2, {-0.0313, 4.58}}, Theme::light);
  for (const char* label : {">-0.0313<", ">4.58<", ">0.964<"}) CHECK(svg.find(label) != svg.npos);
}

TEST_CASE("heat map: a large table keeps the number of largest magnitude of each block") {
  HeatMap map{"t", "r", "c", {}, {}, 600, std::vector<double>(600 * 3, 0.5)};
  map.values[1 * 600 + 4] = -7, map.values[599] = 3, map.values[6] = std::nan("");
  const HeatMap small = shrunk(map);
  CHECK(small.block == 3);
  CHECK(small.columns == 200);
  CHECK(small.rows() == 1);
  CHECK(small.values[1] == -7);
  CHECK(small.values[199] == 3);
  CHECK(small.values[0] == 0.5);
  CHECK(std::isnan(small.values[2]));
  CHECK(small.column_labels[1] == "3");
  CHECK(shrunk({"t", "r", "c", {}, {}, 2, {1, 2, 3, 4}}).block == 1);
}

TEST_CASE("heat map: texts are escaped, labels thinned where there are too many") {
  const std::string svg = to_svg(HeatMap{"a<b", "r&", "\"c\"", {"<tok>", "\x01"}, {"x", "y"}, 2, {0, 1, 2, 3}}, Theme::light);
  for (const char* text : {"a&lt;b", "r&amp;", "&quot;c&quot;", "&lt;tok&gt;", "\uFFFD"}) CHECK(svg.find(text) != svg.npos);
  CHECK(svg.find("<tok>") == svg.npos);
  const std::string many = to_svg(HeatMap{"", "", "", {}, {}, 100, std::vector<double>(100)}, Theme::light);
  CHECK(many.find(">90</text>") != many.npos);
  CHECK(many.find(">91</text>") == many.npos);
}

TEST_CASE("heat map: in the dark theme 0 is dark, and in the light one white") {
  const HeatMap map{"scores", "row", "column", {}, {}, 2, {0, 1, 1, 0}};
  CHECK(to_svg(map, Theme::dark, true).find(".cells{filter:invert") != std::string::npos);
  CHECK(to_svg(map, Theme::light, true).find(".cells{filter:none}") != std::string::npos);
  CHECK(to_svg(map, Theme::light, true).find("class=\"cells\"") != std::string::npos);
}

TEST_CASE("chart: an axis of whole numbers begins where they do and has no tick between two of them") {
  Chart chart{.x_name = "layer", .whole_x = true, .panels = {{"loss", ""}}};
  chart.panels[0].curves.push_back({.name = "a", .points = {{1, 2}, {2, 1}, {3, 5}}});
  const Axis x = x_axis_of(chart, "");
  CHECK(x.low == 1);
  CHECK(x.high == 3);
  CHECK(labels_of(x, 8) == "1 2 3");
}
