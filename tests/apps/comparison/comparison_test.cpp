// ricci-compare: its files, models of equal size, what is told of known records.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/comparison/report.h"
#include "apps/plot/page.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using test_data::error_of;
using test_data::ScratchFolder;

namespace {

constexpr const char* kRun = "model: {vocab: 50, d: 16, layers: 4, heads: 2, ctx: 16}\nbatch: 2\n";

std::vector<Contestant> contestants_of(const ScratchFolder& folder, const std::string& text) { return read_contestants(folder.write("models.yaml", text)); }

std::string complaint(const std::string& text) {
  const ScratchFolder folder;
  const std::string error = error_of([&] { contestants_of(folder, text); });
  return error.starts_with(folder.path()) ? error.substr(folder.path().size() + 1) : error;
}

Outcome outcome(uint64_t seed, double nats) {
  return {"runs/x_" + std::to_string(seed), seed, {{100, 2, nats + 1}, {200, 4, nats}}, nats, 4, 50, 3e6};
}

// Two models, two seeds each.
Comparison known() {
  Matched first, second;
  first.plan.parameters = 1000, second.plan.parameters = 1010;
  first.plan.peak = 2'000'000, second.changed = "model.ff=24";
  return {"small", "ricci-compare small.yaml", Equal::parameters, {{"vanilla", first, {outcome(1, 3), outcome(2, 3.5)}}, {"top<down", second, {outcome(1, 2), outcome(2, 2)}}}};
}

}  // namespace

TEST_CASE("comparison: the file names models, run files beside it and keys") {
  const ScratchFolder folder;
  const std::vector<Contestant> all = contestants_of(folder, "vanilla: run.yaml\ndeep: [sub/run.yaml, model.layers=6, \"model.scales=[1, 4]\"]\n");
  REQUIRE(all.size() == 2);
  CHECK(all[0].name == "vanilla");
  CHECK(all[0].file == folder / "run.yaml");
  CHECK(all[0].overrides.empty());
  CHECK(all[1].file == folder / "sub/run.yaml");
  CHECK(all[1].overrides == std::vector<std::string>{"model.layers=6", "model.scales=[1, 4]"});
}

TEST_CASE("comparison: what is wrong with a file") {
  CHECK(complaint("") == "models.yaml: expected models as NAME: RUN FILE, or NAME: [RUN FILE, KEY=VALUE, ...]");
  CHECK(complaint("[a.yaml]") == "models.yaml: expected models as NAME: RUN FILE, or NAME: [RUN FILE, KEY=VALUE, ...]");
  CHECK(complaint("a: b.yaml\nc/d: e.yaml\n") == "models.yaml:2: 'c/d' cannot be a part of the name of a run");
  CHECK(complaint("a: b.yaml\nc: []\n") == "models.yaml:2: c: expected a run file, or a list of a run file and KEY=VALUE");
  CHECK(complaint("a: {b: c}\n") == "models.yaml:1: a: expected a run file, or a list of a run file and KEY=VALUE");
  CHECK(complaint("a: [b.yaml,\n    layers]\n") == "models.yaml:2: a: 'layers', expected KEY=VALUE");
  CHECK(complaint("a: b.yaml\na: c.yaml\n").find("twice") != std::string::npos);
}

TEST_CASE("comparison: models that would read other tokens are an error") {
  const ScratchFolder folder;
  folder.write("run.yaml", kRun);
  const auto refused = [&](const std::string& keys) {
    return error_of([&] { matched(contestants_of(folder, "a: run.yaml\nb: [run.yaml, " + keys + "]\n"), {}, Equal::nothing, Change::width); });
  };
  CHECK(refused("batch=3") == "b: batch: 3, but a has 2: they would not read the same tokens");
  CHECK(refused("steps=10") == "b: steps: 10, but a has 2000: they would not read the same tokens");
  CHECK(refused("model.ctx=32") == "b: context: 32, but a has 16: they would not read the same tokens");
  CHECK(refused("tokenizer=byte").find("b: tokenizer: byte, but a has char") == 0);
  CHECK(refused("lr=1e-3") == "no error");
}

TEST_CASE("comparison: the closest number") {
  const auto square = [](int64_t n) { return static_cast<double>(n * n); };
  CHECK(closest(square, 100, 3, 1000) == 10);
  CHECK(closest(square, 100, 500, 1000) == 10);
  CHECK(closest(square, 109, 1, 1000) == 10);
  CHECK(closest(square, 111, 1, 1000) == 11);
  CHECK(closest(square, 1, 7, 1000) == 1);
  CHECK(closest(square, 1e9, 7, 1000) == 1000);
  CHECK(closest(square, 0, 7, 1000) == 1);
}

TEST_CASE("comparison: models of equal parameters, FLOPs and memory") {
  const ScratchFolder folder;
  folder.write("run.yaml", kRun);
  const std::vector<Contestant> all = contestants_of(folder, "a: run.yaml\nb: [run.yaml, model.family=topdown, \"model.scales=[1, 4]\", \"model.layers=[1, 1]\", model.d=20]\n");
  for (const Equal equal : {Equal::parameters, Equal::flops, Equal::memory})
    for (const auto& [change, close] : {std::pair{Change::width, 0.1}, {Change::ff, 0.02}, {Change::layers, 0.3}}) {
      CAPTURE(std::string(name_of(equal)));
      CAPTURE(std::string(name_of(change)));
      const std::vector<Matched> models = matched(all, {"model.heads=1"}, equal, change);
      const std::vector<Matched> as_they_are = matched(all, {"model.heads=1"}, Equal::nothing, change);
      CHECK(models[0].changed.empty());
      CHECK(models[0].overrides == std::vector<std::string>{"model.heads=1"});
      CHECK(as_they_are[1].changed.empty());
      CHECK(!models[1].changed.empty());
      CHECK(models[1].overrides.back() == models[1].changed);
      const double first = models[0].amount(equal);
      CHECK(std::abs(models[1].amount(equal) / first - 1) < close);
      CHECK(std::abs(models[1].amount(equal) - first) <= std::abs(as_they_are[1].amount(equal) - first));
    }
  CHECK(matched(all, {"model.heads=4"}, Equal::parameters, Change::width)[1].config.model.d % 4 == 0);
  const auto impossible = contestants_of(folder, "a: run.yaml\nbig: [run.yaml, model.d=256]\n");
  const std::string error = error_of([&] { matched(impossible, {}, Equal::parameters, Change::ff); });
  CHECK(error.find("big: ") == 0);
  CHECK(error.find(" parameters even with model.ff=1, more than the ") != std::string::npos);
}

TEST_CASE("comparison: means and deviations") {
  CHECK(mean_spread({2, 4, 6}).mean == doctest::Approx(4));
  CHECK(mean_spread({2, 4, 6}).deviation == doctest::Approx(2));
  CHECK(mean_spread({5}).deviation == 0);
}

TEST_CASE("comparison: the records of a run") {
  const ScratchFolder folder;
  folder.write("run/metrics.jsonl",
               "{\"step\":1,\"tokens\":100,\"train_loss\":4,\"val_loss\":null,\"tokens_per_s\":50,\"peak_bytes\":10}\n"
               "{\"step\":2,\"tokens\":200,\"train_loss\":3,\"val_loss\":2.5,\"tokens_per_s\":100,\"peak_bytes\":30}\n"
               "{\"step\":3,\"tokens\":300,\"train_loss\":3,\"val_loss\":2.75,\"tokens_per_s\":200,\"peak_bytes\":20}\n");
  const Outcome run = read_outcome(folder / "run", 7);
  CHECK(run.seed == 7);
  CHECK(run.seconds == doctest::Approx(2 + 1 + 0.5));
  CHECK(run.tokens_per_second == 100);
  CHECK(run.peak_bytes == 30);
  CHECK(run.least_nats == 2.5);
  REQUIRE(run.measurements.size() == 2);
  CHECK(run.measurements[0].tokens == 200);
  CHECK(run.measurements[0].seconds == doctest::Approx(3));
  folder.write("none/metrics.jsonl", "{\"step\":1,\"tokens\":100,\"val_loss\":null,\"tokens_per_s\":50,\"peak_bytes\":10}\n");
  CHECK(error_of([&] { read_outcome(folder / "none", 1); }) == (folder / "none/metrics.jsonl") + ": the validation loss was not measured");
}

TEST_CASE("comparison: table, JSON and drawing of known numbers") {
  const std::vector<Cells> cells = cells_of(known());
  REQUIRE(cells.size() == 3);
  CHECK(cells[1] == Cells{"vanilla", "", "1,000", "0.00", "2.0", "+0.0%", "3.0", "3.2500", "0.3536", "25.79", "50", "4.0"});
  CHECK(cells[2][1] == "model.ff=24");
  CHECK(cells[2][5] == "+1.0%");
  CHECK(table_of(known()).starts_with("small\nmodel     changed      parameters"));
  const nlohmann::json json = nlohmann::json::parse(json_of(known()));
  CHECK(json["command"] == "ricci-compare small.yaml");
  CHECK(json["models"][1]["nats"] == 2);
  CHECK(json["models"][0]["runs"][1]["evaluations"][0]["nats"] == 4.5);
  const Chart chart = chart_of(known());
  REQUIRE(chart.panels.size() == 3);
  CHECK(chart.panels[0].curves[0].points[0].x == 100);
  CHECK(chart.panels[0].curves[0].points[0].y == 4.25);
  CHECK(chart.panels[1].curves[0].points[1].x == 4);
  CHECK(chart.panels[2].curves[1].points[0].x == 3);
  // Each panel has an x axis of its own.
  const Layout layout = layout_of(chart);
  CHECK(layout.boxes[0].x.high >= 200);
  CHECK(layout.boxes[1].x.high < 10);
  const std::string page = to_page(chart, cells, Theme::light);
  CHECK(page.find("seconds of training") != std::string::npos);
  CHECK(page.find("top<down") == std::string::npos);
}

TEST_CASE("comparison: before training there is a table of plans alone") {
  Comparison planned = known();
  for (Compared& model : planned.models) model.outcomes.clear();
  CHECK(cells_of(planned)[1] == Cells{"vanilla", "", "1,000", "0.00", "2.0", "+0.0%"});
}
