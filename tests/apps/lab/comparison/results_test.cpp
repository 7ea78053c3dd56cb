// ricci-compare: what is told of known records.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/lab/comparison/report.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using test_data::error_of;
using test_data::ScratchFolder;

namespace {

std::vector<Cells> cells_of(const Comparison& comparison) { return cells_of(report_of(comparison).table); }
std::string json_of(const Comparison& comparison) { return json_of(report_of(comparison)); }
Chart chart_of(const Comparison& comparison) { return *report_of(comparison).chart; }

Outcome outcome(uint64_t seed, double nats) {
  return {"runs/x_" + std::to_string(seed), seed, {{100, 2, nats + 1}, {200, 4, nats}}, nats, {}, 4, 50, 3e6,
      {"ricci 0.1.0, commit " + std::to_string(seed)}};
}

// Two models, two seeds each.
Comparison known() {
  Matched first, second;
  first.name = "vanilla", second.name = "top<down";
  first.plan.parameters = 1000, second.plan.parameters = 1010, second.beside_first = 1.01;
  first.plan.peak = 2'000'000, second.changed = "model.ff=24";
  return {"small", "ricci-compare small.yaml", Equal::parameters,
      {{first, {outcome(1, 3), outcome(2, 3.5)}}, {second, {outcome(1, 2), outcome(2, 2)}}}};
}

}  // namespace

TEST_CASE("comparison: the accuracy is that of the evaluation with the least loss") {
  const ScratchFolder folder;
  folder.write("run/metrics.jsonl",
      "{\"step\":1,\"tokens\":100,\"val_loss\":0.75,\"val_accuracy\":0.5,\"tokens_per_s\":50,\"peak_bytes\":10}\n"
      "{\"step\":2,\"tokens\":200,\"val_loss\":0.5,\"val_accuracy\":0.75,\"tokens_per_s\":50,\"peak_bytes\":10}\n"
      "{\"step\":3,\"tokens\":300,\"val_loss\":0.625,\"val_accuracy\":0.875,\"tokens_per_s\":50,\"peak_bytes\":10}\n");
  folder.write("run/config.yaml", "steps: 3\n");
  const Outcome run = read_outcome(folder / "run", 7);
  CHECK(run.accuracy == 0.75);
  CHECK(run.measurements[2].accuracy == 0.875);
  Comparison classifiers = known();
  for (Compared& model : classifiers.models) {
    model.config.model.family = family_of<Classifier>;
    for (Outcome& each : model.outcomes)
      each.accuracy = each.measurements[0].accuracy = each.measurements[1].accuracy = each.seed == 1 ? 0.75 : 0.5;
  }
  const std::vector<Cells> cells = cells_of(classifiers);
  CHECK(cells[0][9] == "accuracy at that evaluation");
  CHECK(cells[0][10] == "95% +-");
  CHECK(cells[1][9] == "0.6250");
  CHECK(cells[1][10] == "+-1.5883");
  CHECK(chart_of(classifiers).panels[1].title == "validation accuracy");
  CHECK(chart_of(classifiers).panels[1].curves[0].points[1].y == 0.625);
  CHECK(chart_of(classifiers).panels[3].curves[0].marked);
  const nlohmann::json row = nlohmann::json::parse(json_of(classifiers))["models"][0];
  CHECK(row["accuracy"] == 0.625);
  CHECK(row["accuracy_interval_95_half_width"].get<double>() == doctest::Approx(1.5883).epsilon(1e-4));
  classifiers.models[1].outcomes[1].accuracy.reset();  // a run of an older version
  CHECK(cells_of(classifiers)[0][9] == "tokens/s");
}

TEST_CASE("comparison: the records of a run") {
  const ScratchFolder folder;
  folder.write("run/metrics.jsonl",
      "{\"step\":1,\"tokens\":100,\"train_loss\":4,\"val_loss\":null,\"tokens_per_s\":50,\"peak_bytes\":10}\n"
      "{\"step\":2,\"tokens\":200,\"train_loss\":3,\"val_loss\":2.5,\"tokens_per_s\":100,\"peak_bytes\":30}\n"
      "{\"step\":3,\"tokens\":300,\"train_loss\":3,\"val_loss\":2.75,\"tokens_per_s\":200,\"peak_bytes\":20}\n");
  const std::string first = "ricci 0.1.0, commit 1a2b3c4d5e, g++ 12.2.0, seed 7",
                    later = "after step 2: ricci 0.1.0, commit 2b3c4d5e6f, g++ 12.2.0, seed 7";
  folder.write("run/config.yaml", "# " + first + "\n# a note\n# " + later + "\nsteps: 3\n");
  const Outcome run = read_outcome(folder / "run", 7);
  CHECK(run.seed == 7);
  CHECK(run.builds == std::vector<std::string>{first, later});
  CHECK(run.seconds == doctest::Approx(2 + 1 + 0.5));
  CHECK(run.tokens_per_second == 100);
  CHECK(run.peak_bytes == 30);
  CHECK(run.min_nats == 2.5);
  REQUIRE(run.measurements.size() == 2);
  CHECK(run.measurements[0].tokens == 200);
  CHECK(run.measurements[0].seconds == doctest::Approx(3));
  folder.write("none/config.yaml", "steps: 1\n");
  folder.write("none/metrics.jsonl", "{\"step\":1,\"tokens\":100,\"val_loss\":null,\"tokens_per_s\":50,\"peak_bytes\":10}\n");
  CHECK(error_of([&] { read_outcome(folder / "none", 1); }) == (folder / "none/metrics.jsonl") + ": the validation loss was not measured");
}

TEST_CASE("comparison: table, JSON and drawing of known numbers") {
  const std::vector<Cells> cells = cells_of(known());
  REQUIRE(cells.size() == 3);
  CHECK(cells[0] == Cells{"model", "changed", "parameters", "GFLOP/step", "planned MB", "parameters beside first", "measured MB",
                        "least nats/token", "95% +-", "perplexity", "tokens/s", "seconds"});
  CHECK(cells[1] == Cells{"vanilla", "", "1,000", "0.00", "2.0", "+0.0%", "3.0", "3.2500", "+-3.1766", "25.79", "50", "4.0"});
  CHECK(cells[2][1] == "model.ff=24");
  CHECK(cells[2][5] == "+1.0%");
  CHECK(text_of(report_of(known())).starts_with("small\nmodel     changed      parameters"));
  const nlohmann::json json = nlohmann::json::parse(json_of(known()));
  CHECK(json["command"] == "ricci-compare small.yaml");
  CHECK(json["models"][1]["least_nats"] == 2);
  CHECK(text_of(report_of(known())).ends_with(" minus vanilla: -1.2500 +-3.1766 nats/token (95%, seed by seed)"));
  CHECK(json["models"][1]["difference_from_first"] == -1.25);
  CHECK(json["models"][1]["difference_interval_95_half_width"].get<double>() == doctest::Approx(3.1766).epsilon(1e-4));
  CHECK(!json["models"][0].contains("difference_from_first"));
  CHECK(json["models"][0]["interval_95_half_width"].get<double>() == doctest::Approx(3.1766).epsilon(1e-4));
  CHECK(json["models"][0]["runs"][1]["builds"] == std::vector<std::string>{"ricci 0.1.0, commit 2"});
  CHECK(json["models"][1]["perplexity"] == std::exp(2.0));
  CHECK(json["eval_from"] == 0);
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
  const std::string page = page_of({.table = report_of(known()).table, .chart = chart}, Theme::light);
  CHECK(page.find("seconds of training") != std::string::npos);
  CHECK(page.find("top<down") == std::string::npos);
}

TEST_CASE("comparison: before training there is a table of plans alone") {
  Comparison planned = known();
  for (Compared& model : planned.models) model.outcomes.clear();
  CHECK(cells_of(planned)[1] == Cells{"vanilla", "", "1,000", "0.00", "2.0", "+0.0%"});
  const nlohmann::json row = nlohmann::json::parse(json_of(planned))["models"][0];
  CHECK(row["parameters"] == 1000);
  for (const char* key : {"least_nats", "deviation", "perplexity", "runs"}) CHECK(!row.contains(key));
}

TEST_CASE("comparison: which tokens are scored is told in the table, the JSON and the drawing") {
  Comparison scored = known();
  CHECK(scored_note(scored).empty());
  for (Compared& model : scored.models) model.config.eval_from = 15, model.config.context = 64;
  const std::string note = "losses of the positions from 15 on of each window of 64";
  CHECK(scored_note(scored) == note);
  CHECK(text_of(report_of(scored)).ends_with("\n" + note));
  CHECK(nlohmann::json::parse(json_of(scored))["eval_from"] == 15);
  CHECK(chart_of(scored).title == "small; " + note);
}

TEST_CASE("comparison: a loss that is not of the next token has its own unit and no perplexity") {
  Comparison classifiers = known(), coarse = known();
  for (Compared& model : classifiers.models) model.config.model.family = family_of<Classifier>;
  for (Compared& model : coarse.models) model.config.model.family = family_of<Coarse>;
  CHECK(cells_of(classifiers)[0] == Cells{"model", "changed", "parameters", "GFLOP/step", "planned MB", "parameters beside first",
                                        "measured MB", "least nats/document", "95% +-", "tokens/s", "seconds"});
  CHECK(cells_of(classifiers)[1] == Cells{"vanilla", "", "1,000", "0.00", "2.0", "+0.0%", "3.0", "3.2500", "+-3.1766", "50", "4.0"});
  CHECK(cells_of(coarse)[0][7] == "least nats/token");
  CHECK(cells_of(coarse)[0].size() == cells_of(classifiers)[0].size());
  CHECK(!nlohmann::json::parse(json_of(coarse))["models"][0].contains("perplexity"));
  CHECK(chart_of(classifiers).panels[0].unit == "nats per document, mean of 2 seeds, 95% interval");
}
