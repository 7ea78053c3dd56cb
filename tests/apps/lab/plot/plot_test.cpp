// From metrics.jsonl to a picture and a page: numbers, names, messages.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "apps/lab/plot/curves.h"
#include "apps/run/metrics.h"
#include "core/files/file.h"
#include "tests/apps/lab/xml.h"
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

std::string picture(const Chart& chart) {
  Report report;
  report.add(chart);
  std::string all;
  for (const Picture& each : report.pictures) all += each.elements;
  return all;
}

}  // namespace

TEST_CASE("plot: records that are unmeasured or still being written") {
  const ScratchFolder folder;
  folder.write("a/metrics.jsonl", "{\"step\":1,\"lr\":null}\n{\"step\":2,\"lr\":0.5,\"note\":null}\n{\"step\":3}\n{\"step\":4,\"l");
  const RunRecords run = read_records(folder / "a");
  CHECK(run.name == "a");
  CHECK(run.records == 3);
  CHECK(run.columns.at("step") == std::vector<double>{1, 2, 3});
  CHECK(std::isnan(run.columns.at("lr")[0]));
  CHECK(run.columns.at("lr")[1] == 0.5);
  CHECK(run.columns.at("lr").size() == 3);
  CHECK(run.columns.at("note").size() == 3);
  CHECK(run.finite("lr") == std::vector<double>{0.5});
  CHECK(run.last("step") == 3);
  CHECK(std::isnan(run.last("loss")));
  CHECK(chart_of({run}, {}).panels[0].curves[0].points.size() == 1);
}

TEST_CASE("plot: panels and colours of one run and of multiple ones; time is that of training") {
  const ScratchFolder folder;
  folder.write("a/metrics.jsonl", metrics(20));
  folder.write("b/metrics.jsonl", metrics(40, 1));
  const RunRecords a = read_records(folder / "a"), b = read_records(folder / "b");
  const Chart one = chart_of({a}, {});
  REQUIRE(one.panels.size() == 4);
  CHECK(one.panels[0].curves[1].dashed);
  CHECK(one.panels[0].curves[0].points[3].y == 1);
  CHECK(one.panels[0].curves[1].points.size() == 4);
  CHECK(contains(picture(one), ">validation</text>"));
  folder.write("c/metrics.jsonl", "{\"step\":1,\"tokens\":9,\"train_loss\":1,\"val_accuracy\":0.5,\"tokens_per_s\":3}\n");
  CHECK(chart_of({read_records(folder / "c")}, {}).panels[1].title == "accuracy");
  const Chart two = chart_of({a, b}, {.keys = {"val_loss", "train_loss"}, .x = "time", .smooth = 5});
  REQUIRE(two.panels.size() == 1);
  const std::vector<Curve>& curves = two.panels[0].curves;  // two of validation, and each of training with its mean
  REQUIRE(curves.size() == 6);
  CHECK(curves[1].dashed);
  CHECK(curves[4].faint);
  CHECK_FALSE(curves[1].faint);  // validation is not noisy
  CHECK_FALSE(curves[5].faint);
  for (const size_t i : {1u, 4u, 5u}) {
    CHECK(curves[i].name == "b");
    CHECK(curves[i].colour == 1);
  }
  CHECK(curves[4].points[39].x == doctest::Approx(40));
  CHECK(curves[4].points[39].y == doctest::Approx(1.1));
  CHECK(two.x_name == "time of training in minutes");
  for (const char* name : {">a</text>", ">b</text>", ">validation</text>"}) CHECK(count_of(picture(two), name) == 1);
}

TEST_CASE("plot: smoothing is a mean of all values before, with weights that fall by e every width / 2 steps") {
  const std::vector<double> values = {8, 4, kNotMeasured, -2, 5}, steps = {1, 3, 4, 5, 15};
  const std::vector<double> means = smoothed(values, steps, 10);
  CHECK(means[0] == 8);
  CHECK(std::isnan(means[2]));
  for (const size_t i : {1u, 3u, 4u}) {
    double sum = 0, weights = 0;
    for (size_t j = 0; j <= i; ++j) {
      if (std::isnan(values[j])) continue;
      const double weight = std::exp((steps[j] - steps[i]) / 5);
      sum += weight * values[j];
      weights += weight;
    }
    CHECK(means[i] == doctest::Approx(sum / weights).epsilon(1e-12));
  }
  for (const double mean : smoothed(std::vector<double>(50, 3.0), std::vector<double>(50, 7.0), 20)) CHECK(mean == doctest::Approx(3));
  // Records of one step, and records without steps, are one step apart.
  const std::vector<double> next = smoothed({1, 2, 6}, {7, 8, 9}, 3);
  CHECK(smoothed({1, 2, 6}, {7, 7, 7}, 3) == next);
  CHECK(smoothed({1, 2, 6}, std::vector<double>(3, kNotMeasured), 3) == next);
}

TEST_CASE("plot: the time of training has no pause, no evaluation and no late start") {
  const ScratchFolder folder;
  const auto write = [&](const std::string& name, int every, double pause) {
    std::string text;
    double now = 1.7e9;
    for (int64_t step = 1; step <= 40; ++step) {
      now += 2;                       // 2 seconds a step
      if (step % 20 == 0) now += 30;  // an evaluation
      if (step == 21) now += pause;
      if (step % every == 0)
        text += to_json({.step = step, .tokens = step * 64, .train_loss = 3.0, .tokens_per_s = 32.0, .time = now}) + "\n";
    }
    folder.write(name + "/metrics.jsonl", text);
    return read_records(folder / name);
  };
  const RunRecords through = write("through", 5, 0), paused = write("paused", 5, 9 * 3600), each = write("each", 1, 0);
  CHECK(training_seconds(through) == std::vector<double>{10, 20, 30, 40, 50, 60, 70, 80});
  CHECK(training_seconds(paused) == training_seconds(through));
  for (size_t i = 0; i < 8; ++i) CHECK(training_seconds(each)[5 * i + 4] == training_seconds(through)[i]);
  CHECK(chart_of({through, paused}, {.x = "time"}).x_name == "time of training in seconds");
}

TEST_CASE("plot: the time of training if a speed or tokens were not measured") {
  const auto seconds = [](const std::string& text) {
    const ScratchFolder folder;
    folder.write("a/metrics.jsonl", text);
    return training_seconds(read_records(folder / "a"));
  };
  // A record without a speed, of an evaluation after a pause, has the median speed.
  CHECK(seconds(
            "{\"tokens\":100,\"tokens_per_s\":10}\n{\"tokens\":200,\"tokens_per_s\":0,\"time\":1e9}\n{\"tokens\":300,\"tokens_per_s\":50}\n"
            "{\"tokens\":400,\"tokens_per_s\":50}\n") == std::vector<double>{10, 12, 14, 16});
  const std::vector<double> gap =
      seconds("{\"tokens\":100,\"tokens_per_s\":10}\n{\"tokens\":null}\n{\"tokens\":300,\"tokens_per_s\":10}\n");
  CHECK(gap[0] == 10);
  CHECK(std::isnan(gap[1]));
  CHECK(gap[2] == 30);
}

TEST_CASE("plot: the list has running runs on top, and then those with the newest record") {
  const ScratchFolder folder;
  const ScopedVariable runs("RICCI_RUNS", folder.path().c_str());
  const Report none = report_of(read_runs({}));
  CHECK(none.title == "no runs in " + folder.path() + "; 'ricci train data=my.txt name=mine' makes one");
  CHECK(json_of(none) == "[]");
  const std::string old = R"({"step":10,"tokens":64,"val_loss":2.5,"tokens_per_s":32,"time":1e9})"
                          "\n";
  const std::string young = R"({"step":20,"tokens":640,"val_loss":2.75,"tokens_per_s":32,"time":1.7e9})"
                            "\n";
  for (const auto& [name, records, keys] : std::initializer_list<std::tuple<std::string, std::string, std::string>>{
           {"a-new", "", "lr: 0.5"}, {"b-old", old, "data: [/far/away/one.txt, two.txt]"}, {"c-imported", "", ""}, {"d-young", young, ""},
           {"e-running", old, "steps: 40"}, {"f-done", young + old, "steps: 10"}}) {
    folder.write(name + "/config.yaml", "name: " + name + "\n" + keys + "\n");
    if (!records.empty()) folder.write(name + "/metrics.jsonl", records);
  }
  for (const char* name : {"c-imported", "f-done"}) folder.write(std::string(name) + "/model.safetensors", "");
  const std::optional<FolderLock> lock = FolderLock::take(folder / "e-running");
  folder.write("broken/config.yaml", "stepz: 4\n");
  const Report report = report_of(read_runs({}));
  CHECK(report.title == "6 runs");
  const std::vector<Cells> cells = cells_of(report.table);
  REQUIRE(cells.size() == 7);
  CHECK(cells[0] == Cells{"run", "state", "step", "of", "best loss", "at step", "age", "left", "differs in"});
  std::vector<std::string> order;
  for (size_t i = 1; i < cells.size(); ++i) order.push_back(cells[i][0] + " " + cells[i][1] + " " + cells[i][3]);
  CHECK(order == std::vector<std::string>{"e-running running 40", "d-young interrupted 2,000", "b-old interrupted 2,000",
                     "f-done finished 10", "a-new new 2,000", "c-imported imported -"});
  CHECK(cells[1][7] == "6 seconds");  // 2 seconds for 10 steps; 30 are left
  CHECK(cells[1][8] == "steps=40");
  CHECK(cells[2][8].empty());
  CHECK(cells[3][8] == "data=[one.txt, two.txt]");
  CHECK(cells[4][4] == "2.5000");
  CHECK(cells[5][8] == "lr=0.5");
  const Json row = json_of(report.table)[5];
  CHECK(row["state"] == "imported");
  CHECK(!row.contains("steps"));
  REQUIRE(report.notes.size() == 1);
  CHECK(report.notes[0].starts_with(folder / "broken/config.yaml:"));
  CHECK(error_of([&] { read_runs({folder / "nowhere", folder / "none"}); }) == folder / "none: no such run");
}

TEST_CASE("runs: patterns of names, orders and a limit") {
  const ScratchFolder folder;
  const ScopedVariable runs("RICCI_RUNS", folder.path().c_str());
  for (const auto& [name, step, loss, time] : std::initializer_list<std::tuple<std::string, int, double, double>>{
           {"cmp3_a", 30, 2.5, 1.1e9}, {"cmp3_b", 10, 1.5, 1.2e9}, {"other", 20, 2, 1.3e9}}) {
    folder.write(name + "/config.yaml", "steps: 40\n");
    folder.write(name + "/metrics.jsonl", format_message("{{\"step\":{},\"val_loss\":{},\"time\":{}}}\n", {step, loss, time}));
  }
  folder.write("new/config.yaml", "steps: 40\n");
  const auto names = [](const std::vector<std::string>& given, SortBy order, int64_t limit = 0) {
    std::string text;
    for (const Json& row : json_of(report_of(read_runs(given), order, limit).table)) text += row["name"].get<std::string>() + " ";
    return text;
  };
  CHECK(names({}, SortBy::age) == "other cmp3_b cmp3_a new ");
  CHECK(names({}, SortBy::loss) == "cmp3_b other cmp3_a new ");
  CHECK(names({}, SortBy::name) == "cmp3_a cmp3_b new other ");
  CHECK(names({}, SortBy::step) == "cmp3_a other cmp3_b new ");
  CHECK(names({"cmp3*"}, SortBy::name) == "cmp3_a cmp3_b ");
  CHECK(names({folder / "cmp3*"}, SortBy::name) == "cmp3_a cmp3_b ");
  CHECK(names({"?ther", "cmp3_[ab]"}, SortBy::loss, 1) == "cmp3_b ");
  CHECK(report_of(read_runs({}), SortBy::loss, 2).title == "2 of 4 runs");
  CHECK(error_of([&] { read_runs({"cmp4*"}); }) == "cmp4*: no run in " + folder.path() + " matches this pattern");
  folder.write("cmp3*/config.yaml", "steps: 40\n");  // an existing folder, not a pattern
  CHECK(names({"cmp3*"}, SortBy::name) == "cmp3* ");
}

TEST_CASE("plot: runs that differ only in their seeds are a mean in a band") {
  const ScratchFolder folder;
  const auto add = [&](const std::string& name, const std::string& keys, double shift, int64_t steps) {
    folder.write(name + "/config.yaml", keys);
    folder.write(name + "/metrics.jsonl", metrics(steps, shift));
  };
  add("a_lr_1_1", "lr: 1\nseed: 1\nname: a_lr_1_1\n", 0, 20);
  add("b", "lr: 2\nseed: 1\n", 3, 20);
  add("a_lr_1_2", "lr: 1\nseed: 2\nname: a_lr_1_2\n", 1, 20);
  add("a_lr_1_3", "lr: 1\nseed: 3\nname: a_lr_1_3\n", 2, 10);  // not finished
  std::vector<std::string> paths;
  for (const char* name : {"a_lr_1_1", "b", "a_lr_1_2", "a_lr_1_3"}) paths.push_back(folder / name);
  std::vector<ListedRun> runs = read_runs(paths).runs;
  name_by_setting(runs);
  CHECK(runs[0].name == "a_lr_1 (3 seeds)");
  CHECK(runs[3].name == "a_lr_1 (3 seeds)");
  CHECK(runs[1].name == "b");
  const Chart chart = chart_of({runs.begin(), runs.end()}, {.keys = {"train_loss", "val_loss"}});
  const std::vector<Curve>& curves = chart.panels.at(0).curves;
  REQUIRE(curves.size() == 4);
  CHECK(curves[0].name == "a_lr_1 (3 seeds)");
  CHECK(curves[1].name == "b");
  CHECK(curves[3].colour == 1);
  REQUIRE(curves[0].points.size() == 20);
  CHECK(curves[0].points[3].x == 4);
  CHECK(curves[0].points[3].y == doctest::Approx(2));
  CHECK(curves[0].points[3].half_width == doctest::Approx(1));
  CHECK(curves[0].points[19].y == doctest::Approx(0.7));  // the mean of the two runs with this step
  CHECK(curves[0].points[19].half_width == doctest::Approx(0.5));
  CHECK(curves[1].points[3].half_width == 0);
  CHECK(count_of(picture(chart), "class=\"band f0\"") == 2);
  CHECK(chart.panels[0].unit == "nats per token, mean and range of the seeds");
  const Chart rate = chart_of({runs.begin(), runs.end()}, {.keys = {"lr"}});
  CHECK(rate.panels.at(0).unit == "mean and range of the seeds");
  CHECK(rate.panels[0].curves[0].points[5].half_width == 0);
  // Two runs of one seed differ outside their keys.
  add("again", "lr: 1\nseed: 1\n", 1, 20);
  runs = read_runs({folder / "a_lr_1_1", folder / "again"}).runs;
  name_by_setting(runs);
  CHECK(runs[0].name == "a_lr_1_1");
  // The names before the seeds distinguish other runs of one seed.
  runs = read_runs({folder / "a_lr_1_1", folder / "a_lr_1_2", folder / "again"}).runs;
  name_by_setting(runs);
  CHECK(runs[1].name == "a_lr_1 (2 seeds)");
  CHECK(runs[2].name == "again");
}

TEST_CASE("plot: records without a valid config.yaml can be plotted, with a note") {
  const ScratchFolder folder;
  folder.write("broken/config.yaml", "stepz: 4\n");
  for (const char* name : {"bare", "broken"}) folder.write(std::string(name) + "/metrics.jsonl", metrics(3));
  const RunList list = read_runs({folder / "bare/metrics.jsonl", folder / "bare", folder / "broken"});
  REQUIRE(list.runs.size() == 3);
  for (const ListedRun& run : list.runs) {
    CHECK(run.records == 3);
    CHECK(run.state.empty());
  }
  REQUIRE(list.notes.size() == 3);
  CHECK(list.notes[0] == "cannot read " + folder / "bare/config.yaml: No such file or directory");
  CHECK(list.notes[2].starts_with(folder / "broken/config.yaml:1: "));
  CHECK(!json_of(report_of(list).table)[0].contains("steps"));
}

TEST_CASE("plot: values that an axis cannot show are left out") {
  const ScratchFolder folder;
  folder.write("a/metrics.jsonl", "{\"step\":1,\"lr\":0}\n{\"step\":2,\"lr\":0.1}\n{\"step\":3,\"lr\":10}\n");
  const Chart chart = chart_of({read_records(folder / "a")}, {.log_y = true});
  CHECK(chart.panels[0].curves[0].points.size() == 2);
  CHECK(chart.log_y);
  CHECK(contains(picture(chart), "logarithmic"));
}

TEST_CASE("plot: any name gives a well-formed picture and page") {
  const ScratchFolder folder;
  const std::string odd = "</script><b>&'\"\x01\xff" + std::string(100, 'w');
  std::vector<RunRecords> runs;
  for (const char* name : {"plain", "and another"}) {
    folder.write(std::string(name) + "/metrics.jsonl", metrics(30));
    runs.push_back(read_records(folder / name));
  }
  runs[0].name = odd;
  for (const double smooth : {0.0, 9.0}) {
    Report report{.title = odd};
    report.add(chart_of(runs, {.smooth = smooth}));
    CHECK(fault_of(to_svg(odd, report.pictures)) == "");
    CHECK(fault_of(page_of(report)) == "");
    CHECK(count_of(picture(chart_of(runs, {.smooth = smooth})), "\"faint ") == (smooth > 0 ? 6 : 0));
  }
  CHECK(fault_of("<a><b></a></b>") != "");  // the check itself can fail
  CHECK(fault_of("<a>1 & 2</a>") != "");
}

TEST_CASE("plot: a pattern of keys is a panel of one run, and a panel for each key of multiple runs") {
  const ScratchFolder folder;
  for (const char* name : {"a", "b"})
    folder.write(std::string(name) + "/metrics.jsonl", "{\"step\":1,\"grad_norm\":3}\n{\"step\":2,\"grad_norm\":2,\"grad_norm.blocks.2\":1,"
                                                       "\"grad_norm.blocks.10\":0.5,\"grad_norm.tok\":2}\n");
  const RunRecords a = read_records(folder / "a"), b = read_records(folder / "b");
  const auto titles = [](const Chart& chart) {
    std::string all;
    for (const Panel& panel : chart.panels) {
      all += panel.title + ":";
      for (const Curve& curve : panel.curves) all += format_message(" {}/{}", {curve.name, curve.colour});
      all += "\n";
    }
    return all;
  };
  CHECK(titles(chart_of({a}, {.keys = {"grad_norm.*", "grad_norm.tok"}})) ==
        "grad_norm.*: grad_norm.tok/0 grad_norm.blocks.2/1 grad_norm.blocks.10/2\ngrad_norm.tok: a/0\n");
  CHECK(titles(chart_of({a, b}, {.keys = {"*.blocks.*"}})) == "grad_norm.blocks.2: a/0 b/1\ngrad_norm.blocks.10: a/0 b/1\n");
  CHECK(contains(picture(chart_of({a}, {.keys = {"grad_norm.*"}})), ">grad_norm.blocks.10</text>"));
  CHECK(error_of([&] { chart_of({a}, {.keys = {"weight_norm.*"}}); }).starts_with("no run has the metric 'weight_norm.*'"));
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
  for (const char* name : {"nothing", "empty"}) CHECK(read_records(folder / name).records == 0);
  CHECK(error("broken") == folder / "broken/metrics.jsonl:3: invalid JSON at byte 12 of 11");
  CHECK(error("text") == folder / "text/metrics.jsonl:1: lr is \"high\", expected a number");
  for (const auto& [text, fault] : {std::pair("[1]\n", "expected a JSON object"),
           {"{\"step\":[[1]]}\n", "step is [[1]], expected a number"}, {"{{{{\n", "invalid JSON at byte 2 of 5"}}) {
    folder.write("odd/metrics.jsonl", text);
    CHECK(error("odd") == folder / "odd/metrics.jsonl:1: " + fault);
  }
  const std::vector<RunRecords> runs = {read_records(folder / "a")};
  const auto refusal = [&](const CurveOptions& options) { return test::bounded_error([&] { chart_of(runs, options); }); };
  CHECK(refusal({.keys = {"train_los"}}) == "no run has the metric 'train_los', the nearest is 'train_loss'");
  CHECK(refusal({.keys = {"weather"}}).starts_with("no run has the metric 'weather'; the metrics are step, tokens, train_loss, "));
  CHECK(refusal({.x = "steps"}) == "no run has the metric 'steps', the nearest is 'step'");
  CHECK(refusal({.x = "time"}) == folder / "a/metrics.jsonl: no record contains time");
  CHECK(refusal({.keys = {"val_loss"}}) == folder / "a/metrics.jsonl: has no value to draw");
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
  for (const std::string run : {"a", "b"})
    for (const bool log : {false, true})
      for (const std::string x : {"step", "time", "lr"}) {
        if (run == "b" && (log || x != "step")) continue;
        CAPTURE(run);
        CAPTURE(log);
        CAPTURE(x);
        const auto draw = [&] {
          const std::string svg = picture(chart_of({read_records(folder / run)}, {.x = x, .smooth = 5, .log_y = log}));
          if (!fault_of(svg).empty()) fail("no well-formed picture");
          if (contains(svg, "nan") || contains(svg, "inf")) fail("not a number");
        };
        CHECK(test::bounded_error(draw) == "no error");
      }
}
