// Values far from all others: axes that leave them out, lines that end at the border, marks and words. Colours of many runs.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "apps/lab/drawing/svg.h"
#include "apps/lab/plot/curves.h"
#include "apps/run/metrics/metrics.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

Panel panel_of(const std::vector<double>& values) {
  Panel panel{"loss", "", {Curve{"a", 0, false, {}, {}}}};
  for (size_t i = 0; i < values.size(); ++i) panel.curves[0].points.push_back({static_cast<double>(i + 1), values[i]});
  return panel;
}

// 1, 1.01, ... 1.99
std::vector<double> hundred() {
  std::vector<double> values;
  for (int i = 0; i < 100; ++i) values.push_back(1 + 0.01 * ((i * 37) % 100));
  return values;
}

std::vector<double> with(std::vector<double> values, const std::vector<std::pair<size_t, double>>& changes) {
  for (const auto& [i, value] : changes) values[i] = value;
  return values;
}

size_t left_out(const std::vector<double>& values, bool log = false) {
  return values.size() - without_outliers(panel_of(values), log).size();
}

RunRecords spiked(const ScratchFolder& folder) {
  std::string text;
  for (int64_t step = 1; step <= 100; ++step)
    text += to_json({.step = step,
                .tokens = step,
                .train_loss = step == 50   ? 500.0
                              : step == 51 ? -70.0
                                           : 2 + 0.01 * static_cast<double>(step)}) +
            "\n";
  folder.write("a/metrics.jsonl", text);
  return read_records(folder / "a");
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("clipping: a few values far away are left out, near ones and many are not") {
  CHECK(left_out(hundred()) == 0);
  CHECK(left_out(with(hundred(), {{50, 40}})) == 1);
  CHECK(left_out(with(hundred(), {{50, 40}, {70, -9}})) == 2);
  CHECK(left_out(with(hundred(), {{50, 4}})) == 0);  // not three ranges away
  std::vector<double> many = hundred();
  for (size_t i = 80; i < 100; ++i) many[i] = 40;  // a run that ends in a bad place
  CHECK(left_out(many) == 0);
  CHECK(left_out({1, 2, 3, 100}) == 0);                 // too few to tell
  CHECK(left_out(std::vector<double>(100, 3.0)) == 0);  // no range
  CHECK(left_out(with(std::vector<double>(100, 3.0), {{50, 4}})) == 0);
  CHECK(left_out({}) == 0);
}

TEST_CASE("clipping: where a curve comes from is shown, a single first value is not") {
  CHECK(left_out(with(hundred(), {{0, 40}, {1, 20}, {2, 9}})) == 0);
  CHECK(left_out(with(hundred(), {{0, 40}, {1, 20}, {50, 40}})) == 1);
  CHECK(left_out(with(hundred(), {{0, 40}})) == 1);
}

TEST_CASE("clipping: on a logarithmic axis the distance is that of logarithms") {
  CHECK(left_out(with(hundred(), {{50, 6}})) == 1);
  CHECK(left_out(with(hundred(), {{50, 6}}), true) == 0);
  CHECK(left_out(with(hundred(), {{50, 1e3}, {51, 1e-3}}), true) == 2);
}

TEST_CASE("clipping: a chart tells of what it leaves out, and shows it when asked to") {
  const ScratchFolder folder;
  const RunRecords run = spiked(folder);
  for (const double smooth : {0.0, 5.0}) {
    const Chart chart = make_chart({run}, {.smooth = smooth});
    const PanelBox box = layout_of(chart).boxes[0];
    CHECK(box.y.high < 4);
    CHECK(box.y.low >= 0);
    const Outside outside = outside_of(chart.panels[0], box.y);
    CHECK(outside.above == 1);
    CHECK(outside.below == 1);
    CHECK(words_of(outside, false) == "1 above, up to 500; 1 below, down to -70");
    CHECK(words_of(outside, true) == "1 above; 1 below");
    const std::string svg = to_svg(chart, Theme::light);
    CHECK(contains(svg, ">1 above, up to 500; 1 below, down to -70</text>"));
    CHECK(count(svg, "class=\"outside f0\"") == 2);
    const Chart full = make_chart({run}, {.smooth = smooth, .full_range = true});
    CHECK(layout_of(full).boxes[0].y.high > 500);
    CHECK(words_of(outside_of(full.panels[0], layout_of(full).boxes[0].y), false).empty());
    CHECK_FALSE(contains(to_svg(full, Theme::light), "class=\"outside"));
  }
}

TEST_CASE("clipping: words tell large numbers shortly") {
  CHECK(words_of({.above = 1234, .highest = 4.56e6}, false) == "1,234 above, up to 4.6M");
  CHECK(words_of({.below = 2, .lowest = -1500}, false) == "2 below, down to -1.5k");
  CHECK(words_of({}, false).empty());
}

TEST_CASE("clipping: lines end where they leave the box") {
  const PanelBox box{100, 10, 50, 200, {0, 10, false}, {0, 1, false}};
  const auto path = [&](const std::vector<Point>& points) { return path_through(points, box); };
  CHECK(path({{0, 0}, {5, 0.5}, {10, 1}}) == "M100.00 210.00L125.00 110.00L150.00 10.00");
  CHECK(path({{0, 0.5}, {2, 2.5}, {4, 0.5}}) == "M100.00 110.00L102.50 10.00M117.50 10.00L120.00 110.00");
  CHECK(path({{0, -1}, {10, 2}}) == "M116.67 210.00L133.33 10.00");  // through the whole box
  CHECK(path({{0, 2}, {10, 3}}) == "");
  CHECK(path({{0, 1e200}, {10, 0}, {10, -1e200}}) == "M150.00 10.00L150.00 210.00L150.00 210.00");
  CHECK(path({{0, 1e200}, {10, -0.5}}) == "M150.00 10.00L150.00 210.00");
  CHECK(path({{4, 0.5}}) == "M120.00 110.00h0.01");
  CHECK(path({{4, 1.5}}) == "");
  CHECK(path({}) == "");
}

namespace {

using Lab = std::array<double, 3>;

// OKLab (Ottosson, 2020): distances in it are those that people see.
Lab lab_of(const std::string& hex) {
  std::array<double, 3> c;
  for (size_t i = 0; i < 3; ++i) {
    const double v = std::stoi(hex.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    c[i] = v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
  }
  const double l = std::cbrt(0.4122214708 * c[0] + 0.5363325363 * c[1] + 0.0514459929 * c[2]);
  const double m = std::cbrt(0.2119034982 * c[0] + 0.6806995451 * c[1] + 0.1073969566 * c[2]);
  const double s = std::cbrt(0.0883024619 * c[0] + 0.2817188376 * c[1] + 0.6299787005 * c[2]);
  return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s, 1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
      0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

double distance(const std::string& a, const std::string& b) {
  const Lab x = lab_of(a), y = lab_of(b);
  return std::hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]);
}

// The colour of the first rule for the class.
std::string colour_of(const std::string& css, const std::string& rule) {
  const size_t at = css.find(rule);
  return at == css.npos ? "none" : css.substr(at + rule.size(), 7);
}

}  // namespace

TEST_CASE("colours: twelve that differ from each other and from the background, in both themes") {
  CHECK(kColours >= 12);
  for (const Theme theme : {Theme::light, Theme::dark}) {
    const std::string css = style_of(theme), background = colour_of(css, ".background{fill:");
    std::vector<std::string> colours;
    for (int i = 0; i < kColours; ++i) colours.push_back(colour_of(css, ".c" + std::to_string(i) + "{stroke:"));
    for (size_t i = 0; i < colours.size(); ++i) {
      CAPTURE(colours[i]);
      CHECK(distance(colours[i], background) > 0.25);
      for (size_t j = 0; j < i; ++j) {
        CAPTURE(colours[j]);
        CHECK(distance(colours[i], colours[j]) > 0.115);
      }
    }
  }
}

TEST_CASE("colours: the legend's lines of training and validation have the colour of no run") {
  for (const Theme theme : {Theme::light, Theme::dark}) {
    const std::string css = style_of(theme), plain = colour_of(css, ".plain{stroke:");
    CHECK(distance(plain, colour_of(css, ".background{fill:")) > 0.25);
    for (int i = 0; i < kColours; ++i) CHECK(distance(plain, colour_of(css, ".c" + std::to_string(i) + "{stroke:")) > 0.115);
  }
}

TEST_CASE("legend: the dashes of training and of validation are those of the curves, for any number of runs") {
  const auto dashes_of = [](const std::string& line) {
    const std::string start = "stroke-dasharray=\"";
    const size_t at = line.find(start);
    return at == line.npos ? "solid" : line.substr(at + start.size(), line.find('"', at + start.size()) - at - start.size());
  };
  const ScratchFolder folder;
  folder.write("a/metrics.jsonl", "{\"step\":1,\"train_loss\":3,\"val_loss\":4}\n{\"step\":2,\"train_loss\":2,\"val_loss\":3}\n");
  for (const size_t count : {size_t{1}, size_t{2}, size_t{12}, size_t{13}, size_t{24}, size_t{25}, size_t{40}}) {
    CAPTURE(count);
    const Chart chart = make_chart(std::vector<RunRecords>(count, read_records(folder / "a")), {});
    const std::string svg = to_svg(chart, Theme::light, false);
    std::set<std::string> told, drawn;
    size_t at = svg.find("<line");
    for (const LegendEntry& entry : chart.legend) {
      if (entry.name == "training" || entry.name == "validation")
        told.insert(entry.name + " " + dashes_of(svg.substr(at, svg.find("/>", at) - at)));
      at = svg.find("<line", at + 1);
    }
    // Each curve is drawn by one path; curves of training come first.
    const std::vector<Curve>& curves = chart.panels[0].curves;
    at = svg.find("<path");
    for (const Curve& curve : curves) {
      drawn.insert(std::string(curve.dashed ? "validation " : "training ") + dashes_of(svg.substr(at, svg.find("/>", at) - at)));
      at = svg.find("<path", at + 1);
    }
    const size_t rounds = std::min<size_t>((count + kColours - 1) / kColours, kRounds);
    CHECK(told == drawn);
    CHECK(drawn.size() == 2 * rounds);
    CHECK(chart.legend.size() == (count > 1 ? count : 0) + 2 * rounds);
    // Only curves of validation have dashes, which are longer than dots.
    for (const std::string& look : told) CHECK(contains(look, "9 5") + contains(look, "7 4") == look.starts_with("validation"));
  }
}

TEST_CASE("colours: runs of the same colour, and training and validation, differ in their dashes") {
  Chart chart;
  chart.panels.push_back(panel_of({1, 2}));
  std::set<std::string> looks;
  for (int run = 0; run < 3 * kColours; ++run)
    for (const bool dashed : {false, true}) {
      chart.legend = {{"run", run, dashed}};
      const std::string svg = to_svg(chart, Theme::light, false);
      const size_t at = svg.find("class=\"curve c", svg.find("<line"));
      REQUIRE(at != svg.npos);
      looks.insert(svg.substr(at, svg.find("/>", at) - at));
    }
  CHECK(looks.size() == static_cast<size_t>(6 * kColours));
}
