// Axes have ticks at round numbers. Charts show intervals around points, and label logarithmic axes. Heat maps are tables as cells with a
// legend.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "apps/lab/chart/heat_map.h"
#include "tests/data/files.h"

using namespace ricci::apps;
using namespace test_data;

namespace {

std::string labels_of(const Axis& axis, int most) {
  std::string text;
  for (const Tick& tick : ticks(axis, most)) text += (text.empty() ? "" : " ") + tick.label;
  return text;
}

std::string svg_of(const Chart& chart, size_t panel = 0) { return pictures_of(chart).at(panel).elements; }
std::string svg_of(const Curve& curve) { return svg_of(Chart{.x_name = "x", .panels = {{"loss", "", {curve}}}}); }

// All numbers in a text, such as the positions of a path.
std::vector<double> numbers_of(const std::string& text) {
  std::vector<double> numbers;
  for (const char* at = text.c_str(); *at;) {
    char* end = nullptr;
    const double number = std::strtod(at, &end);
    if (end != at) numbers.push_back(number);
    at = end == at ? at + 1 : end;
  }
  return numbers;
}

// The attribute of the element on the first line with this text.
std::string attribute(const std::string& svg, const std::string& element, const std::string& name) {
  const size_t at = svg.find(element);
  REQUIRE(at != svg.npos);
  const size_t line = svg.rfind('\n', at) + 1, begin = svg.find(" " + name + "=\"", line) + name.size() + 3;
  return svg.substr(begin, svg.find('"', begin) - begin);
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
  CHECK(labels_of({-2, 2}, 5) == "-2 -1 0 1 2");
  CHECK(labels_of({3.001, 3.002}, 6) == "3.0010 3.0012 3.0014 3.0016 3.0018 3.0020");
  CHECK(labels_of({.low = 0.9, .high = 3.1, .whole = true}, 8) == "1 2 3");
  CHECK(labels_of({.low = 0, .high = 50, .whole = true}, 5) == "0 10 20 30 40 50");
}

TEST_CASE("axis: logarithmic ticks") {
  CHECK(labels_of({0.1, 100, true}, 10) == "0.1 0.2 0.5 1 2 5 10 20 50 100");
  CHECK(labels_of({0.1, 100, true}, 5) == "0.1 1 10 100");
  CHECK(labels_of({2, 6, true}, 6) == "2 3 4 5 6");  // less than a decade
  CHECK(labels_of({1e-5, 1e-3, true}, 5) == "1e-5 1e-4 0.001");
  CHECK(labels_of({240, 9000, true, true}, 6) == "256 512 1,024 2,048 4,096 8,192");
  CHECK(labels_of({30, 70, true, true}, 6) == "32 64");
}

TEST_CASE("axis: for any range there are ticks inside it, ascending, not too many, with different labels") {
  for (const double low : {-7.3e5, -1.0, 0.0, 1e-9, 0.37, 12345.678})
    for (const double width : {1e-6, 0.013, 1.0, 777.0, 3.1e8})
      for (int most = 5; most <= 12; ++most) {
        if (width < 1e-6 * std::abs(low)) continue;  // labels of 16 digits are useless
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

TEST_CASE("axis: ranges hold all values, also a single one or none; a logarithmic one spans a factor of 3") {
  const auto around = [](std::vector<double> values, bool log = false) { return axis_around(values, log); };
  CHECK(around({}).low < around({}).high);
  CHECK(around({0}).low < 0);
  CHECK(around({5}).low < 5);
  CHECK(around({5}).high > 5);
  CHECK(around({1e-3, 1e-3 * (1 + 1e-15)}).high == doctest::Approx(1.5e-3));
  CHECK(around({1, 100}).low == 0);  // the lowest is far below the highest
  CHECK(around({2, 10}).low == doctest::Approx(1.68));
  CHECK(around({8, 10}).high == doctest::Approx(10.08));
  CHECK(around({1, 100}, true).low == doctest::Approx(std::pow(100, -0.04)));
  CHECK(around({10, 12.4}, true).high / around({10, 12.4}, true).low == doctest::Approx(3));
  CHECK(around({10, 12.4}, true).share(std::sqrt(124)) == doctest::Approx(0.5));
}

TEST_CASE("chart: a logarithmic axis says so, and points that it cannot show are left out") {
  const Chart chart{.x_name = "tokens",
      .log_x = true,
      .log_y = true,
      .panels = {{"step", "ms", {{.name = "a", .marked = true, .points = {{0, 1}, {8, -2}, {16, 3}, {32, NAN}, {64, 5}}}}}}};
  const std::string svg = svg_of(chart);
  CHECK(contains(svg, ">tokens, logarithmic</text>"));
  CHECK(contains(svg, ">ms, logarithmic</tspan>"));
  CHECK(count_of(svg, "<circle") == 2);
  CHECK(contains(svg, "<title>a: 16, 3</title>"));
  CHECK(!contains(svg, "nan"));
}

TEST_CASE("chart: panels share the x axis") {
  const Chart chart{.x_name = "x",
      .panels = {{"a", "", {{.name = "a", .points = {{10, 1}, {20, 2}}}}}, {"b", "", {{.name = "a", .points = {{30, 1}, {40, 2}}}}}}};
  CHECK(contains(svg_of(chart, 0), ">40</text>"));
}

TEST_CASE("intervals: a band runs along the upper ends and back along the lower ones") {
  const std::string svg = svg_of(Curve{.name = "a", .points = {{1, 5, 0.5}, {2, 4, 0.25}, {3, 3, 0.125}}});
  const std::vector<double> band = numbers_of(attribute(svg, "class=\"band f0\"", "d")),
                            line = numbers_of(attribute(svg, "class=\"curve c0\"", "d"));
  REQUIRE(band.size() == 12);
  REQUIRE(line.size() == 6);
  const double unit = (line[5] - line[1]) / 2;  // y's unit; y grows downwards
  for (size_t i = 0; i < 3; ++i) {
    const double half_width = std::vector{0.5, 0.25, 0.125}[i];
    CHECK(band[2 * i] == line[2 * i]);
    CHECK(band[10 - 2 * i] == line[2 * i]);
    CHECK(line[2 * i + 1] - band[2 * i + 1] == doctest::Approx(half_width * unit).epsilon(0.02));
    CHECK(band[11 - 2 * i] - line[2 * i + 1] == doctest::Approx(half_width * unit).epsilon(0.02));
  }
  CHECK(!contains(svg_of(Curve{.name = "a", .points = {{1, 5}, {2, 4}}}), "class=\"band"));
}

TEST_CASE("intervals: a wide band widens the axis by half of the range of the values, a bar is shown whole") {
  const std::vector<double> band =
      numbers_of(attribute(svg_of(Curve{.name = "a", .points = {{1, 5, 100}, {2, 4, 0}}}), "class=\"band", "d"));
  const std::vector<double> line =
      numbers_of(attribute(svg_of(Curve{.name = "a", .points = {{1, 5, 100}, {2, 4, 0}}}), "class=\"curve", "d"));
  CHECK(line[1] - band[1] == doctest::Approx((line[3] - line[1]) * 0.56).epsilon(0.02));  // and the margin of the axis
  const std::string single = svg_of(Curve{.name = "a", .points = {{4, 5, 0.5}}});
  CHECK(count_of(single, "class=\"bar c0\"") == 1);
  CHECK(contains(single, ">4.6</text>"));
  CHECK(contains(single, ">5.4</text>"));
  CHECK(contains(single, "<title>a: 4, 5 ± 0.5</title>"));
}

TEST_CASE("curves: a long one keeps its extremes, and has some 60 titles") {
  std::vector<Point> points;
  for (int i = 0; i < 100000; ++i) points.push_back({static_cast<double>(i), i == 54321 ? 50 : i == 12345 ? -50 : std::sin(i * 0.7)});
  const std::string svg = svg_of(Curve{.name = "a", .points = points});
  std::vector<double> line = numbers_of(attribute(svg, "class=\"curve", "d")), heights;
  CHECK(line.size() > 1500);
  CHECK(line.size() < 2300);
  for (size_t i = 0; i < line.size(); i += 2) {
    if (i) CHECK(line[i] >= line[i - 2]);
    heights.push_back(line[i + 1]);
  }
  std::sort(heights.begin(), heights.end());
  CHECK(heights[1] - heights[0] > 100);                       // the one far above
  CHECK(heights.back() - heights[heights.size() - 2] > 100);  // and the one far below
  CHECK(count_of(svg, "class=\"hit f0\"") > 50);
  CHECK(count_of(svg, "class=\"hit f0\"") < 80);
}

TEST_CASE("legend: names once, no name if all curves have it, and dashes are validation") {
  const std::vector<Point> line = {{1, 1}, {2, 2}};
  Chart chart{.panels = {{"loss", ""}, {"rate", ""}}};
  add_curves(chart, "first", {line, line}, false);
  add_curves(chart, "second", {line, {}}, false);
  CHECK(chart.panels[0].curves[1].colour == 1);
  chart.panels[0].curves.push_back({.name = "first", .dashed = true, .points = line});
  chart.panels[0].curves.push_back({.name = "first", .faint = true, .points = line});
  const std::string svg = svg_of(chart), other = svg_of(chart, 1);
  for (const char* name : {"first", "second", "validation"}) CHECK(count_of(svg, fmt::format(">{}</text>", name)) == 1);
  CHECK(count_of(other, ">first</text>") == 1);
  CHECK(count_of(other, ">second</text>") == 0);
  const std::string one =
      svg_of({.panels = {{"loss", "", {{.name = "a", .points = line}, {.name = "a", .dashed = true, .points = line}}}}});
  CHECK(!contains(one, ">a</text>"));
  for (const char* name : {"training", "validation"}) CHECK(count_of(one, fmt::format(">{}</text>", name)) == 1);
  std::set<int> colours;
  for (int i = 0; i < kColours; ++i) {
    add_curves(chart, std::to_string(i), {line});
    colours.insert(chart.panels[0].curves.back().colour);
  }
  CHECK(colours.size() == kColours);
}

TEST_CASE("curves: beyond the colours, dots replace the line, and the legend shows them") {
  Chart chart{.panels = {{"loss", ""}}};
  for (int i = 0; i <= kColours; ++i) add_curves(chart, "model " + std::to_string(i), {{{1, 1}, {2, 2}}}, false);
  chart.panels[0].curves.push_back({.name = "model 12", .colour = kColours, .dashed = true, .points = {{1, 1}, {2, 2}}});
  const std::string svg = svg_of(chart);
  CHECK(count_of(svg, "class=\"curve c0\" style=\"stroke-dasharray:1 5\"/>") == 2);  // the curve and its line in the legend
  CHECK(count_of(svg, "class=\"curve dashed c0\" style=\"stroke-dasharray:7 5 1 5\"/>") == 1);
  CHECK(count_of(svg, "class=\"curve c0\"/>") == 2);
  CHECK(count_of(svg, "class=\"curve c1\"/>") == 2);
}

TEST_CASE("names: a long one is cut between two characters, and texts are escaped") {
  CHECK(fitting("short", 100) == "short");
  CHECK(fitting("äöüäöüäöüäöüäöüäöü", 80) == "äöüäöüäöü…");
  CHECK(escaped("a<b & \"c\"\x01\xff'") == "a&lt;b &amp; &quot;c&quot;\uFFFD\uFFFD&#39;");
  const std::string svg = svg_of(Chart{.x_name = "a<b", .panels = {{"<p>", "&", {{.name = "\"", .marked = true, .points = {{1, 1}}}}}}});
  for (const char* text : {"a&lt;b", "&lt;p&gt;", "&amp;", "&quot;: 1, 1"}) CHECK(contains(svg, text));
}

TEST_CASE("style: dark is one rule, with another background and other curves") {
  const std::string style = picture_style();
  const size_t dark = style.find("@media (prefers-color-scheme:dark)");
  REQUIRE(dark != style.npos);
  for (const std::string& rule : {std::string(".background{fill:"), fmt::format(".c{}{{stroke:", kColours - 1)}) {
    const size_t first = style.find(rule), second = style.find(rule, dark);
    CHECK(first < dark);
    REQUIRE(second != style.npos);
    CHECK(style.substr(first, rule.size() + 7) != style.substr(second, rule.size() + 7));
  }
}

TEST_CASE("heat map: opacity is the root of the share; 0 is the background; a value that is not finite is grey") {
  const std::string svg = picture_of({"t", "row", "column", {}, {}, 3, {4, -1, 0, NAN, 0.04, -4}}).elements;
  CHECK(contains(svg, "<path d=\"M0 0h1v1h-1z\" class=\"f0\" fill-opacity=\"1.00\"/>"));
  CHECK(contains(svg, "<path d=\"M1 0h1v1h-1z\" class=\"f1\" fill-opacity=\"0.50\"/>"));
  CHECK(contains(svg, "<path d=\"M1 1h1v1h-1z\" class=\"f0\" fill-opacity=\"0.10\"/>"));
  CHECK(contains(svg, "<path d=\"M0 1h1v1h-1z\" class=\"muted\"/>"));
  CHECK(!contains(svg, "M2 0h1v1h-1z\" class=\"f0\""));
  CHECK(contains(svg, "class=\"background\" text-anchor=\"middle\">4</text>"));
  CHECK(contains(svg, "class=\"ink\" text-anchor=\"middle\">0.04</text>"));
  CHECK(contains(svg, "<title>0, 1: -1</title>"));
}

TEST_CASE("heat map: the legend has the shades and the values of the cells, but cells up to 8 x 8 show their own values") {
  const std::string svg = picture_of({"", "", "", {}, {}, 9, {-0.0313, 4.58, 0, 0, 0, 0, 0, 0, 0}}).elements;
  const std::string legend = svg.substr(svg.rfind("<g transform"));
  for (const char* colour : {"class=\"f1\" fill-opacity=\"0.08\"", "class=\"f0\" fill-opacity=\"1.00\""}) CHECK(count_of(svg, colour) == 2);
  CHECK(count_of(legend, "class=\"f1\"") == 1);
  for (const char* value : {">-0.031</text>", ">0.96</text>", ">4.6</text>"}) CHECK(contains(legend, value));
  CHECK(count_of(picture_of({"", "", "", {}, {}, 8, std::vector<double>(64, 1)}).elements, "crispEdges") == 1);
}

TEST_CASE("heat map: a large table keeps the number of largest magnitude of each block") {
  HeatMap map{"t", "r", "c", {}, {}, 192, std::vector<double>(192 * 3, 0.04)};
  map.values[1 * 192 + 4] = -4;
  map.values[6] = NAN;
  CHECK(block_of(map) == 3);
  CHECK(block_of({"t", "r", "c", {}, {}, 64, std::vector<double>(64)}) == 1);
  const std::string svg = picture_of(map).elements, cells = svg.substr(0, svg.rfind("<g transform"));
  CHECK(contains(cells, "<path d=\"M1 0h1v1h-1z\" class=\"f1\" fill-opacity=\"1.00\"/>"));
  CHECK(contains(cells, "<path d=\"M2 0h1v1h-1z\" class=\"muted\"/>"));
  CHECK(count_of(cells, "h1v1h-1z") == 64);
  CHECK(!contains(cells, "<title>"));
  CHECK(contains(cells, ">60</text>"));
}

TEST_CASE("heat map: labels are escaped, turned if they are words, and thinned if they are many") {
  const std::string letters = picture_of({"a<b", "r", "c", {"<tok>", "\x01"}, {"x", "y"}, 2, {0, 1, 2, 3}}).elements;
  for (const char* text : {">a&lt;b<", ">&lt;tok&gt;<", ">\uFFFD<", "text-anchor=\"middle\">x</text>"}) CHECK(contains(letters, text));
  const std::vector<std::string> names(60, "a long name");
  const std::string words = picture_of({"", "", "", names, names, 60, std::vector<double>(3600)}).elements;
  CHECK(count_of(words, ">a long name</text>") == 2 * 12);
  CHECK(count_of(words, "rotate(-90") == 12 + 1);
}
