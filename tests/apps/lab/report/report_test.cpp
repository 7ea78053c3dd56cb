// A report as text, JSON, SVG and page. Pages are well-formed XML, for readers other than browsers.
#include "apps/lab/report/report.h"

#include <doctest/doctest.h>

#include "tests/apps/lab/xml.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

Report example() {
  Report report{.title = "runs a<b & c"};
  report.table.columns = {{.heading = "run", .key = "run", .left = true}, {.heading = "state", .key = "state", .left = true},
      {.heading = "loss", .key = "loss", .format = "{:.2f}"}};
  report.table.add_row({"a<b", "running", 1.25});
  report.table.add_row({"c", "new", Json()});
  report.notes = {"Losses & more."};
  report.add({.x_name = "steps", .panels = {{"loss", "nats", {{.name = "a<b", .points = {{1, 2}, {2, 1}}}}}}});
  return report;
}

}  // namespace

TEST_CASE("report: as text and as JSON") {
  CHECK(text_of(example()) == "runs a<b & c\nrun  state    loss\na<b  running  1.25\nc    new         -\nLosses & more.");
  CHECK(Json::parse(json_of(example())) == Json::parse(R"([{"run":"a<b","state":"running","loss":1.25},{"run":"c","state":"new"}])"));
  Report other = example();
  other.json = {{"layers", 2}};
  CHECK(Json::parse(json_of(other)) == other.json);
}

TEST_CASE("report: a page has everything, escaped, and needs no other file") {
  Report report = example();
  report.pictures.push_back(report.pictures[0]);
  report.pictures.back().group = "layer 0";
  report.pictures.back().caption = "A & B";
  const std::string page = page_of(report);
  CHECK(fault_of(page) == "");
  for (const char* text : {"<h1>runs a&lt;b &amp; c</h1>", "<h2>layer 0</h2>", "<figcaption>A &amp; B</figcaption>",
           "<td>a&lt;b</td><td class=\"left\">running</td><td>1.25</td>", "<th>run</th><th class=\"left\">state</th><th>loss</th>",
           "Losses &amp; more.", "prefers-color-scheme:dark"})
    CHECK(contains(page, text));
  CHECK(count_of(page, "<figure") == 2);
  for (const char* text : {"<script", "src=", "href=", "url(", "refresh"}) CHECK(!contains(page, text));
  CHECK(!contains(page_of({.title = "t"}), "<table>"));
}

TEST_CASE("report: SVG has pictures in rows of two, and follows the window") {
  Report report = example();
  const std::string one = to_svg(report.title, report.pictures);
  CHECK(fault_of(one) == "");
  CHECK(contains(one, "viewBox=\"0 0 600 "));
  CHECK(contains(one, "max-width:100%"));
  for (int i = 0; i < 2; ++i) report.pictures.push_back(report.pictures[0]);
  const std::string three = to_svg(report.title, report.pictures);
  CHECK(contains(three, "viewBox=\"0 0 1184 "));
  CHECK(contains(three, "translate(20 56)"));
  CHECK(contains(three, "translate(604 56)"));
  CHECK(count_of(three, "translate(20 ") == 2);
}

TEST_CASE("report: files by the ending of their names, and errors before anything is computed") {
  const ScratchFolder folder;
  Report report = example();
  draw(report, folder / "a.html");
  draw(report, folder / "a.svg");
  CHECK(read_file(folder / "a.html") == page_of(report));
  CHECK(read_file(folder / "a.svg") == to_svg(report.title, report.pictures));
  report.pictures.clear();
  CHECK(contains(error_of([&] { draw(report, folder / "b.svg"); }), "b.svg: is not written; the result has nothing to draw"));
  CHECK(error_of([] { check({.json = "", .out = "a.pdf"}); }) == "a.pdf: expected a name that ends in .svg or .html");
  CHECK(contains(error_of([] { check({.json = "", .out = "a.png"}); }), "rsvg-convert"));
  CHECK(contains(error_of([] { check({.json = "", .out = "a.svg"}, false); }), "a.svg: expected a name that ends in .html"));
  CHECK(contains(error_of([] { check({.json = "nowhere/a.json", .out = ""}); }), "folder nowhere: No such file or directory"));
  check({.json = "-", .out = folder / "a.svg"});
}
