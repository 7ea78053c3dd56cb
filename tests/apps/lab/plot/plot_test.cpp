// From metrics.jsonl to a drawing and a page: numbers, names, messages.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/lab/plot/curves.h"
#include "apps/lab/report/report.h"
#include "apps/run/metrics.h"
#include "tests/bounded.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

std::string metrics(int64_t steps, double shift = 0) {
  std::string text;
  for (int64_t i = 1; i <= steps; ++i) {
    const double x = static_cast<double>(i);
    text += to_json({i, i * 64, shift + 4 / x, i % 5 ? std::optional<double>() : shift + 5 / x, {}, 1e-3, 0.5, 64 / 60.0, 1 << 20,
                1.7e9 + 60 * x}) +
            "\n";
  }
  return text;
}

// Every element ends where it should, attributes are quoted, and texts hold no bare < or &.
std::string fault_of(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t at = 0; at < xml.size(); ++at) {
    if (xml[at] == '&') {
      const std::string entity = xml.substr(at, xml.find(';', at) + 1 - at);
      if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;" && entity != "&#39;")
        return "entity " + entity.substr(0, 10);
    }
    if (xml[at] != '<') continue;
    const size_t end = xml.find('>', at);
    if (end == xml.npos) return "no end of tag";
    const std::string tag = xml.substr(at + 1, end - at - 1), name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag.find('<') != tag.npos || count_of(tag, "\"") % 2) return "tag " + tag;
    if (tag[0] == '/') {
      if (open.empty() || "/" + open.back() != tag) return "end of " + tag;
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty() ? "" : "open " + open.back();
}

}  // namespace

TEST_CASE("plot: thinned curves keep their ends and every extreme of a column") {
  std::vector<Point> points;
  for (int i = 0; i < 100000; ++i) points.push_back({static_cast<double>(i), i == 54321 ? 50 : i == 12345 ? -50 : std::sin(i * 0.7)});
  const std::vector<Point> thin = thinned(points, 200);
  CHECK(thin.size() <= 804);
  CHECK(thin.size() > 600);
  CHECK(thin.front().x == 0);
  CHECK(thin.back().x == 99999);
  const auto has = [&](double x) { return std::any_of(thin.begin(), thin.end(), [&](const Point& p) { return p.x == x; }); };
  CHECK(has(54321));
  CHECK(has(12345));
  CHECK(std::is_sorted(thin.begin(), thin.end(), [](const Point& a, const Point& b) { return a.x < b.x; }));
  CHECK(thinned(std::vector<Point>(1000, {1, 2}), 10).size() <= 4);  // all in one place
}

TEST_CASE("plot: records that are unmeasured, not finite or still being written") {
  const ScratchFolder folder;
  folder.write(
      "a/metrics.jsonl", "{\"step\":1,\"lr\":NaN}\n{\"step\":2,\"lr\":0.5,\"note\":null}\n{\"step\":3,\"lr\": -Infinity}\n{\"step\":4,\"l");
  const RunRecords run = read_records(folder / "a");
  CHECK(run.name == "a");
  CHECK(run.records == 3);
  CHECK(run.not_finite == 2);
  CHECK(run.columns.at("step") == std::vector<double>{1, 2, 3});
  CHECK(std::isnan(run.columns.at("lr")[0]));
  CHECK(run.columns.at("lr")[1] == 0.5);
  CHECK(run.columns.at("note").size() == 3);
  const Chart chart = make_chart({run}, {});
  CHECK(chart.left_out == 2);
  CHECK(chart.panels[0].curves[0].points.size() == 1);
}

TEST_CASE("plot: NaN stands for a number after a key that ends in a backslash, and is text inside of a key") {
  const ScratchFolder folder;
  folder.write("a/metrics.jsonl", "{\"step\":1,\"NaN \\\"\\\\\":4,\"lr\":NaN}\n");
  const RunRecords run = read_records(folder / "a");
  CHECK(run.not_finite == 1);
  CHECK(run.columns.at("NaN \"\\") == std::vector<double>{4});
}

TEST_CASE("plot: scaling to the drawing, by the numbers of a path") {
  const ScratchFolder folder;
  folder.write("a/metrics.jsonl", "{\"step\":0,\"train_loss\":0}\n{\"step\":5,\"train_loss\":5}\n{\"step\":10,\"train_loss\":10}\n");
  const Chart chart = make_chart({read_records(folder / "a")}, {});
  const PanelBox box = layout_of(chart).boxes[0];
  CHECK(box.x.low == 0);
  CHECK(box.x.high == 10);
  CHECK(box.y.low == 0);
  CHECK(box.y.high == doctest::Approx(10.4));
  char path[100];
  std::snprintf(path, sizeof path, "M%.2f %.2fL%.2f %.2fL%.2f %.2f", box.left, box.top + box.height, box.left + box.width / 2,
      box.top + box.height * (1 - 5 / 10.4), box.left + box.width, box.top + box.height * (1 - 10 / 10.4));
  CHECK(contains(to_svg(chart, Theme::light), path));
}

TEST_CASE("plot: panels, colours and legend of one run and of several; time is that of training") {
  const ScratchFolder folder;
  folder.write("a/metrics.jsonl", metrics(20));
  folder.write("b/metrics.jsonl", metrics(40, 1));
  const Chart one = make_chart(read_all_records({folder / "a"}), {});
  REQUIRE(one.panels.size() == 4);
  CHECK(one.panels[0].curves[1].name == "validation");
  CHECK(one.panels[0].curves[1].colour == 1);
  CHECK(one.title == "a");
  folder.write("c/metrics.jsonl", R"({"step":1,"tokens":9,"train_loss":1,"val_accuracy":0.5,"tokens_per_s":3})"
                                  "\n");
  CHECK(make_chart(read_all_records({folder / "c"}), {}).panels[1].title == "accuracy");
  const Chart two =
      make_chart(read_all_records({folder / "a", folder / "b"}), {.keys = {"val_loss", "train_loss"}, .x = "time", .smooth = 5});
  REQUIRE(two.panels.size() == 1);
  REQUIRE(two.panels[0].curves.size() == 4);
  CHECK(two.panels[0].curves[3].name == "b, training");
  CHECK(two.panels[0].curves[3].colour == 1);
  CHECK(two.panels[0].curves[3].raw[39].x == doctest::Approx(40));
  CHECK(two.panels[0].curves[0].raw.empty());  // validation is not noise
  CHECK(two.x_name == "time of training in minutes");
  CHECK(two.legend.size() == 4);
  const auto table = cells_of(summary(read_all_records({folder / "a"})));
  CHECK(table[1] == std::vector<std::string>{"a", "20", "1,280", "0.2000", "0.2500", "20", "1"});
}

TEST_CASE("plot: values that a logarithmic axis cannot show are counted") {
  const ScratchFolder folder;
  folder.write("a/metrics.jsonl", "{\"step\":1,\"lr\":0}\n{\"step\":2,\"lr\":0.1}\n{\"step\":3,\"lr\":10}\n");
  const Chart chart = make_chart({read_records(folder / "a")}, {.log_y = true});
  CHECK(chart.left_out == 1);
  CHECK(chart.panels[0].curves[0].points.size() == 2);
  CHECK(layout_of(chart).boxes[0].y.log);
}

TEST_CASE("plot: any name gives a sound drawing and a sound page") {
  CHECK(escaped("a<b>&\"c'\x01\xff é") == "a&lt;b&gt;&amp;&quot;c&#39;\uFFFD\uFFFD é");
  CHECK(escaped("\xed\xa0\x80") == "\uFFFD\uFFFD\uFFFD");  // half a surrogate pair
  const ScratchFolder folder;
  const std::string odd = "</script><b>&'\"\x01\xff" + std::string(100, 'w');
  for (const char* name : {"plain", "and another"}) folder.write(std::string(name) + "/metrics.jsonl", metrics(30));
  std::vector<RunRecords> runs = read_all_records({folder / "plain", folder / "and another"});
  runs[0].name = odd;
  for (const double smooth : {0.0, 9.0}) {
    const Chart chart = make_chart(runs, {.smooth = smooth, .title = odd});
    const std::string svg = to_svg(chart, Theme::automatic);
    CHECK(fault_of(svg) == "");
    CHECK(count_of(svg, "class=\"raw ") == (smooth > 0 ? 6 : 0));
    CHECK(count_of(svg, "class=\"curve c") == 10 + 2);  // and the legend's
    const std::string page = page_of({.table = summary(runs), .chart = chart}, Theme::dark);
    CHECK(count_of(page, "</script>") == 2);
    const std::string start = "id=\"chart\">", json = page.substr(page.find(start) + start.size());
    const auto data = Json::parse(json.substr(0, json.find("</script>")));
    CHECK(data["panels"][0]["curves"][0]["points"].size() == 30);
    CHECK(data["panels"][0]["curves"][0]["points"][29].size() == (smooth > 0 ? 3 : 2));
  }
  CHECK(fault_of("<a><b></a></b>") != "");  // the check itself can fail
  CHECK(fault_of("<a>1 & 2</a>") != "");
}

TEST_CASE("plot: a page tells beside each average the value that was measured there") {
  const ScratchFolder folder;
  folder.write("a/metrics.jsonl", "{\"step\":0,\"train_loss\":4096}\n" + metrics(60, 9));
  const Chart chart = make_chart({read_records(folder / "a")}, {.keys = {"train_loss"}, .smooth = 9});
  const std::string page = page_of({.chart = chart}, Theme::light), start = "id=\"chart\">",
                    json = page.substr(page.find(start) + start.size());
  const auto points = Json::parse(json.substr(0, json.find("</script>")))["panels"][0]["curves"][0]["points"];
  REQUIRE(points.size() == 60);  // the first value is a mark at the border
  for (const auto& point : points) CHECK(point[2].get<double>() == doctest::Approx(9 + 4 / point[0].get<double>()));
}

TEST_CASE("plot: messages") {
  const ScratchFolder folder;
  folder.write("empty/metrics.jsonl", "");
  folder.write("nothing/config.yaml", "");
  folder.write("broken/metrics.jsonl", metrics(2) + "{\"step\":3,\n" + metrics(1));
  folder.write("text/metrics.jsonl", "{\"step\":1,\"lr\":\"high\"}\n");
  folder.write("a/metrics.jsonl", "{\"step\":1,\"train_loss\":2,\"val_loss\":null}\n");
  const auto error = [&](const std::string& name) { return test::bounded_error([&] { read_records(folder / name); }); };
  CHECK(error("none") == folder / "none: no such run");
  CHECK(error("nothing") == folder / "nothing: holds no metrics.jsonl, so no run has begun in it");
  CHECK(error("empty") == folder / "empty/metrics.jsonl: holds no record yet");
  CHECK(error("broken") == folder / "broken/metrics.jsonl:3: not JSON: fault at byte 12 of 11");
  CHECK(error("text") == folder / "text/metrics.jsonl:1: lr is \"high\", expected a number");
  const std::vector<RunRecords> runs = {read_records(folder / "a")};
  const auto refusal = [&](const ChartOptions& options) { return test::bounded_error([&] { make_chart(runs, options); }); };
  CHECK(refusal({.keys = {"train_los"}}) == "no run has 'train_los' among its metrics, the nearest is 'train_loss'");
  CHECK(refusal({.x = "steps"}) == "no run has 'steps' among its metrics, the nearest is 'step'");
  CHECK(refusal({.x = "time"}) == folder / "a/metrics.jsonl: no record has its time");
  CHECK(refusal({.keys = {"val_loss"}}) == "val_loss: no value of it can be drawn");
  CHECK(error_of([] { parse_theme("blue"); }) == "theme: expected auto, light or dark, got 'blue'");
}

TEST_CASE("plot: numbers at the ends of the range") {
  const ScratchFolder folder;
  std::string text;
  int64_t step = 0;
  for (const char* value : {"1", "5e-324", "2.2250738585072014e-308", "1e-200", "-1e-200", "1.7976931348623157e308",
           "-1.7976931348623157e308", "1e200", "-1e200", "0", "-0.0"})
    text += format_message(
        "{{\"step\":{},\"train_loss\":{},\"val_loss\":{},\"lr\":{},\"tokens\":9223372036854775807,\"time\":{},\"tokens_per_s\":{}}}\n",
        {++step, value, value, value, value, value});
  folder.write("a/metrics.jsonl", text);
  folder.write("b/metrics.jsonl",
      "{\"step\":9223372036854775807,\"train_loss\":1e308,\"val_loss\":1e308}\n{\"step\":-9223372036854775808,\"train_loss\":1}\n");
  for (const char* run : {"a", "b"}) {
    for (const bool log : {false, true}) {
      for (const char* x : {"step", "time", "lr"}) {
        if (run[0] == 'b' && (log || x[0] != 's')) continue;
        CAPTURE(run);
        CAPTURE(log);
        CAPTURE(x);
        const auto draw = [&] {
          const std::vector<RunRecords> runs = read_all_records({folder / run});
          const Chart chart = make_chart(runs, {.x = x, .smooth = 5, .log_x = log, .log_y = log});
          if (!fault_of(to_svg(chart, Theme::automatic)).empty()) fail("no sound drawing");
          if (page_of({.table = summary(runs), .chart = chart}, Theme::dark).find("null") != std::string::npos)
            fail("a number that is none");
        };
        CHECK(test::bounded_error(draw) == "no error");
      }
    }
  }
}

TEST_CASE("plot: records that are nested deeply, have many keys or are long") {
  const ScratchFolder folder;
  const auto error = [&](const std::string& text) {
    folder.write("a/metrics.jsonl", text);
    return test::bounded_error([&] { read_records(folder / "a"); });
  };
  const std::string place = folder / "a/metrics.jsonl:1: ";
  CHECK(error("{\"step\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}\n") ==
        place + "the JSON is nested more than 8 levels deep");
  CHECK(error("{\"step\":[[1]]}\n") == place + "step is [[1]], expected a number");
  CHECK(error("{\"" + std::string(100'000, 'k') + "\":\"" + std::string(100'000, 'v') + "\"}\n") ==
        place + std::string(37, 'k') + "... is \"" + std::string(36, 'v') + "..., expected a number");
  std::string many = "{";
  for (int i = 0; i < 200; ++i) many += format_message("{}\"k{}\":1", {i ? "," : "", i});
  CHECK(error(many + "}\n") == place + "more than 100 different metrics in one run");
  CHECK(error(std::string(500'000, '{')) == folder / "a/metrics.jsonl" + ": holds no record yet");
  CHECK(error(std::string(500'000, '{') + "\n") == place + "not JSON: fault at byte 2 of 500001");
  CHECK(error(std::string(500'000, '"') + "\n") == place + "not JSON: fault at byte 4 of 500001");
}
