// ricci compare: its files, models of equal size, and the report of known records; means over seeds and their intervals.
#include "apps/lab/comparison/comparison.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "apps/lab/plot/records.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

constexpr const char* kRun = "model: {vocab: 50, d: 16, layers: 4, heads: 2, ctx: 16}\nbatch: 2\n";

std::vector<Contestant> contestants_of(const ScratchFolder& folder, const std::string& text, const std::vector<std::string>& common = {}) {
  return read_contestants(folder.write("models.yaml", text), common);
}

std::string complaint(const std::string& text) {
  const ScratchFolder folder;
  const std::string error = error_of([&] { contestants_of(folder, text); });
  return error.starts_with(folder.path()) ? error.substr(folder.path().size() + 1) : error;
}

std::vector<Cells> cells_of(const Comparison& comparison) { return cells_of(report_of(comparison).table); }
std::string json_of(const Comparison& comparison) { return json_of(report_of(comparison)); }

Outcome outcome(uint64_t seed, double nats) {
  return {"runs/x_" + std::to_string(seed), seed, {{100, 2, nats + 1, kNotMeasured}, {200, 4, nats, kNotMeasured}}, 4, 50, 3e6,
      {"ricci 0.3.0, commit " + std::to_string(seed)}};
}

// Two models, two seeds each.
Comparison known() {
  Contestant first, second;
  first.name = "vanilla", second.name = "top<down";
  first.plan.parameters = 1000, second.plan.parameters = 1010, second.vs_first = 1.01;
  first.plan.peak = 2'000'000, second.changed = "model.ff=24";
  first.outcomes = {outcome(1, 3), outcome(2, 3.5)}, second.outcomes = {outcome(1, 2), outcome(2, 2)};
  return {"small", "ricci compare small.yaml", Equal::parameters, {first, second}};
}

}  // namespace

TEST_CASE("comparison: the file names models, run files next to it and keys") {
  const ScratchFolder folder;
  const std::vector<Contestant> all =
      contestants_of(folder, "vanilla: run.yaml\ndeep: [sub/run.yaml, model.layers=6, \"model.scales=[1, 4]\"]\n");
  REQUIRE(all.size() == 2);
  CHECK(all[0].name == "vanilla");
  CHECK(all[0].file == folder / "run.yaml");
  CHECK(all[0].overrides.empty());
  CHECK(all[1].file == folder / "sub/run.yaml");
  CHECK(all[1].overrides == std::vector<std::string>{"model.layers=6", "model.scales=[1, 4]"});
}

TEST_CASE("comparison: a list for a key that takes one value is a grid") {
  const ScratchFolder folder;
  const auto rows = [&](const std::string& text, const std::vector<std::string>& common) {
    std::vector<std::string> names;
    for (const Contestant& each : contestants_of(folder, text, common)) {
      names.push_back(each.name + ":");
      for (const std::string& word : each.overrides) names.back() += " " + word;
    }
    return names;
  };
  using Names = std::vector<std::string>;
  CHECK(rows("a: run.yaml\nb: [run.yaml, lr=1]\n", {"steps=4", "lr=[1e-3, 3e-4]"}) ==
        Names{"a_lr_1e-3: steps=4 lr=1e-3", "a_lr_3e-4: steps=4 lr=3e-4", "b_lr_1e-3: lr=1 steps=4 lr=1e-3",
            "b_lr_3e-4: lr=1 steps=4 lr=3e-4"});
  CHECK(rows("a: run.yaml\n", {"model.d=[8, 16]", "model.mixer=[[sdp], metric]"}) ==
        Names{"a_d_8_mixer_sdp: model.d=8 model.mixer=[sdp]", "a_d_8_mixer_metric: model.d=8 model.mixer=metric",
            "a_d_16_mixer_sdp: model.d=16 model.mixer=[sdp]", "a_d_16_mixer_metric: model.d=16 model.mixer=metric"});
  CHECK(rows("a: run.yaml\nb: [run.yaml, 'clip=[1, null]']\n", {}) == Names{"a:", "b_clip_1: clip=1", "b_clip_null: clip=null"});
  CHECK(rows("a: run.yaml\n", {"model.mixer=[[dispatcher, dispatcher, sdp], sdp]", "model.scales=[[1, 4], [1, 2, 8]]"}) ==
        Names{"a_mixer_dispatcher-dispatcher-sdp_scales_1-4: model.mixer=[dispatcher, dispatcher, sdp] model.scales=[1, 4]",
            "a_mixer_dispatcher-dispatcher-sdp_scales_1-2-8: model.mixer=[dispatcher, dispatcher, sdp] model.scales=[1, 2, 8]",
            "a_mixer_sdp_scales_1-4: model.mixer=sdp model.scales=[1, 4]",
            "a_mixer_sdp_scales_1-2-8: model.mixer=sdp model.scales=[1, 2, 8]"});
  // Keys with lists, unknown keys and empty lists are unchanged.
  for (const char* word : {"model.scales=[1, 4]", "model.layers=[2, 2]", "model.mixer=[sdp, metric]", "data=[a, b]", "freeze=[tok, pos]",
           "model.windows=[[0, 4], [4, 16]]", "lrr=[1, 2]", "lr=[]"})
    CHECK(rows("a: run.yaml\n", {word}) == Names{"a: " + std::string(word)});
  const auto refused = [&](const std::vector<std::string>& words) { return error_of([&] { rows("a: run.yaml\n", words); }); };
  CHECK(refused({"lr=[1, 1]"}) == "lr=[1, 1]: a_lr_1 is given twice");
  CHECK(refused({"lr=[1, [2]]"}) == "lr=[1, [2]]: lr: expected a list of values");
  CHECK(refused({"lr=[1, 2]", "lr=3"}) == "lr=3: lr already has a list of values");
  CHECK(refused({"init=[runs/x, y]"}) == "init=[runs/x, y]: 'a_init_runs/x' cannot be part of a run name");
  CHECK(refused({"lr=[1, 2"}).starts_with("lr=[1, 2: not YAML: "));
}

TEST_CASE("comparison: a run file, a run or keys are one model, and a grid makes more of it") {
  const ScratchFolder folder;
  const ScopedVariable runs("RICCI_RUNS", folder.path().c_str());
  const auto models = [&](const std::string& path, const std::vector<std::string>& keys) {
    std::vector<std::string> names;
    for (const Contestant& each : read_contestants(path, keys)) {
      CHECK(each.model.empty());
      names.push_back(each.name + " of " + each.file);
    }
    return names;
  };
  using Names = std::vector<std::string>;
  const std::string file = folder.write("run.yaml", std::string("base: other.yaml\n") + kRun);
  CHECK(models(file, {"lr=[1e-3, 3e-4]"}) == Names{"lr_1e-3 of " + file, "lr_3e-4 of " + file});
  CHECK(models("", {"batch=4", "lr=[1, 2]", "model.d=[8]"}) == Names{"lr_1_d_8 of ", "lr_2_d_8 of "});
  CHECK(models(file, {"lr=1"}) == Names{" of " + file});
  const std::string config = folder.write("mine/config.yaml", kRun);
  CHECK(models("mine", {"lr=[1]"}) == Names{"lr_1 of " + config});
  // A model can have the name of a key, and `base` is a key of both.
  CHECK(contestants_of(folder, "data: a.yaml\nbase: [b.yml, lr=1]\n").size() == 2);
  CHECK(contestants_of(folder, "base: run.yaml\n")[0].name == "base");
  CHECK(complaint("vanilla: small.yaml\nsteps: 4\n") == "models.yaml: steps is a key of a run file, but vanilla is a model of a comparison "
                                                        "file; keys for all models belong on the command line");
}

TEST_CASE("comparison: errors of a file") {
  CHECK(complaint("") == "models.yaml: expected a run file, or models as NAME: RUN FILE, or NAME: [RUN FILE, KEY=VALUE, ...]");
  CHECK(complaint("[a.yaml]") == "models.yaml: expected a run file, or models as NAME: RUN FILE, or NAME: [RUN FILE, KEY=VALUE, ...]");
  CHECK(complaint("a: b.yaml\nc/d: e.yaml\n") == "models.yaml:2: 'c/d' cannot be part of a run name");
  CHECK(complaint("\"a\\nb\": e.yaml\n") == "models.yaml:1: 'a b' cannot be part of a run name");
  CHECK(complaint("..: e.yaml\n") == "models.yaml:1: '..' cannot be part of a run name");
  CHECK(complaint("a: b.yaml\nc: []\n") == "models.yaml:2: c: expected a run file, or a list of a run file and KEY=VALUE");
  CHECK(complaint("a: {b: c}\n") == "models.yaml:1: a: expected a run file, or a list of a run file and KEY=VALUE");
  CHECK(complaint("a: [b.yaml,\n    layers]\n") == "models.yaml:2: a: 'layers', expected KEY=VALUE or ~KEY");
  CHECK(complaint("a: b.yaml\na: c.yaml\n").find("twice") != std::string::npos);
}

TEST_CASE("comparison: models that would read other tokens are an error") {
  const ScratchFolder folder;
  folder.write("run.yaml", kRun);
  const auto refused = [&](const std::string& keys) {
    return error_of(
        [&] { matched(contestants_of(folder, "a: run.yaml\nb: [run.yaml, " + keys + "]\n", {}), Equal::nothing, Change::width); });
  };
  CHECK(refused("batch=3") == "b: batch: 3, but a has 2; models must read the same tokens");
  CHECK(refused("steps=10") == "b: steps: 10, but a has 2000; models must read the same tokens");
  CHECK(refused("model.ctx=32") == "b: context: 32, but a has 16; models must read the same tokens");
  CHECK(refused("tokenizer=byte").find("b: tokenizer: byte, but a has char") == 0);
  CHECK(refused("model.vocab=40") == "b: model.vocab: 40, but a has 50; models must read the same tokens");
  CHECK(refused("lr=1e-3") == "no error");
}

TEST_CASE("comparison: models that predict different things are an error") {
  const ScratchFolder folder;
  folder.write("run.yaml", kRun);
  folder.write("labels.tsv", "0\tno\n1\tyes\n");
  const auto compared = [&](const std::string& first, const std::string& second) {
    return error_of([&] {
      matched(contestants_of(folder, "a: [run.yaml, " + first + "]\nb: [run.yaml, " + second + "]\n", {"sample.tokens=0"}), Equal::nothing,
          Change::width);
    });
  };
  const std::string coarse = "model.family=coarse, model.layers=1, model.scale=", scales = ", \"model.scales=[1, 4]\", model.layers=1";
  CHECK(compared("lr=1e-3", coarse + "4") == "b: model.family: coarse does not predict the same targets as a");
  CHECK(compared(coarse + "4", coarse + "2") == "b: model.family: coarse does not predict the same targets as a");
  CHECK(compared(coarse + "4", coarse + "4, lr=1e-3") == "no error");
  CHECK(compared("lr=1e-3", "model.family=topdown" + scales) == "no error");
  const std::string labels = "\"data=" + (folder / "labels.tsv") + "\", format=tsv, ";
  const std::string label_field = "label_field=1, text_field=2, model.family=classifier";
  CHECK(compared(labels + label_field + ", model.causal=false", labels + label_field + ", lr=1e-3") == "no error");
}

TEST_CASE("comparison: evaluations score the positions that the losses of all models count") {
  const ScratchFolder folder;
  folder.write("run.yaml", kRun);
  const std::string topdown = "[run.yaml, model.family=topdown, model.layers=1, ", full = topdown + "model.loss_from=first_full, ";
  const auto from = [&](const std::string& models, const std::vector<std::string>& common = {}, const std::vector<std::string>& only = {}) {
    std::vector<int64_t> all;
    for (const Contestant& model : matched(contestants_of(folder, models, common), Equal::nothing, Change::width, only)) {
      all.push_back(model.config.eval_from);
      if (all.back() > 0) CHECK(model.overrides.back() == "eval_from=" + std::to_string(all.back()));
      else
        CHECK(std::none_of(
            model.overrides.begin(), model.overrides.end(), [](const std::string& key) { return key.starts_with("eval_from"); }));
    }
    return all;
  };
  const std::string three = "a: run.yaml\nb: " + full + "\"model.scales=[1, 4]\"]\nc: " + full + "\"model.scales=[1, 2]\"]\n";
  CHECK(from(three) == std::vector<int64_t>{3, 3, 3});
  CHECK(from(three, {}, {"c", "a"}) == std::vector<int64_t>{3, 3});  // for any choice
  CHECK(from(three, {"eval_from=5"}) == std::vector<int64_t>{5, 5, 5});
  CHECK(from("a: run.yaml\nb: " + topdown + "\"model.scales=[1, 4]\"]\n") == std::vector<int64_t>{0, 0});
  CHECK(from("a: [run.yaml, eval_from=7]\nb: run.yaml\n") == std::vector<int64_t>{7, 7});
  CHECK(error_of([&] { from("a: run.yaml\nb: " + full + "\"model.scales=[1, 16]\", model.shift=block]\n"); }) ==
        "b: context: 16 is too short to score a token");
  // Evaluations of documents with a mask omit no positions.
  const std::vector<std::string> pairs = {"data=pairs.jsonl", "format=pairs"};
  CHECK(from("a: run.yaml\nb: " + topdown + "\"model.scales=[1, 4]\"]\n", pairs) == std::vector<int64_t>{0, 0});
  CHECK(from("a: " + full + "\"model.scales=[1, 4]\"]\nb: " + full + "\"model.scales=[1, 4]\"]\n", pairs) == std::vector<int64_t>{0, 0});
  CHECK(error_of([&] { from("a: run.yaml\nb: " + full + "\"model.scales=[1, 8]\"]\n", pairs); }) ==
        "b: scores a document from position 7 on, but a from position 0 on");
}

TEST_CASE("comparison: the file's first model is the reference, chosen or not") {
  const ScratchFolder folder;
  folder.write("run.yaml", kRun);
  const std::vector<Contestant> all = contestants_of(folder, "a: run.yaml\nb: [run.yaml, model.layers=2]\nc: [run.yaml, model.layers=1]\n");
  const std::vector<Contestant> three = matched(all, Equal::parameters, Change::ff),
                                two = matched(all, Equal::parameters, Change::ff, {"c", "b"});
  REQUIRE(three.size() == 3);
  REQUIRE(two.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(two[i].name == three[i + 1].name);
    CHECK(two[i].changed == three[i + 1].changed);
    CHECK(two[i].vs_first == three[i + 1].vs_first);
  }
  CHECK(three[0].vs_first == 1);
  CHECK(!two[0].changed.empty());
  CHECK(two[0].vs_first == static_cast<double>(three[1].plan.parameters) / static_cast<double>(three[0].plan.parameters));
  CHECK(error_of([&] { matched(all, Equal::nothing, Change::ff, {"aa"}); }) == "--only: no model is called 'aa', the nearest is 'a'");
}

TEST_CASE("comparison: the closest number") {
  const auto square = [](int64_t n) { return static_cast<double>(n * n); };
  CHECK(closest(square, 100) == 10);
  CHECK(closest(square, 109) == 10);
  CHECK(closest(square, 111) == 11);
  CHECK(closest(square, 1) == 1);
  CHECK(closest(square, 1e12) == 1 << 16);
  CHECK(closest(square, 0) == 1);
}

TEST_CASE("comparison: models of equal parameters, FLOPs and memory") {
  const ScratchFolder folder;
  folder.write("run.yaml", kRun);
  const auto with_heads = [&](int heads) {
    return contestants_of(folder,
        "a: run.yaml\nb: [run.yaml, model.family=topdown, \"model.scales=[1, 4]\", \"model.layers=[1, 1]\", model.d=20]\n",
        {"model.heads=" + std::to_string(heads)});
  };
  const std::vector<Contestant> as_they_are = matched(with_heads(1), Equal::nothing, Change::width);
  CHECK(as_they_are[1].changed.empty());
  for (const Equal equal : {Equal::parameters, Equal::flops, Equal::memory})
    for (const auto& [change, close] : {std::pair{Change::width, 0.1}, {Change::ff, 0.02}, {Change::layers, 0.3}}) {
      CAPTURE(std::string(name_of(equal)));
      const std::string changed(name_of(change));
      CAPTURE(changed);
      const std::vector<Contestant> models = matched(with_heads(1), equal, change);
      CHECK(models[0].changed.empty());
      CHECK(models[0].overrides == std::vector<std::string>{"model.heads=1"});
      CHECK(!models[1].changed.empty());
      CHECK(models[1].overrides.back() == models[1].changed);
      const double first = amount_of(models[0].plan, equal), second = amount_of(models[1].plan, equal);
      CHECK(std::abs(second / first - 1) < close);
      CHECK(models[1].vs_first == second / first);
      CHECK(std::abs(second - first) <= std::abs(amount_of(as_they_are[1].plan, equal) - first));
    }
  CHECK(matched(with_heads(4), Equal::parameters, Change::width)[1].config.model.d % 4 == 0);
  for (const char* fraction : {"1", "0.5"}) {
    const std::string keys = "model.preset=llama, model.rope_fraction=" + std::string(fraction) + ", model.d=24";
    const std::vector<Contestant> turning =
        contestants_of(folder, "a: [run.yaml, model.d=64]\nb: [run.yaml, " + keys + "]\n", {"model.heads=2"});
    const Contestant model = matched(turning, Equal::parameters, Change::width)[1];
    CHECK(model.config.model.d % 4 == 0);
    CHECK(std::abs(model.vs_first - 1) < 0.2);
  }
  const auto impossible = contestants_of(folder, "a: run.yaml\nbig: [run.yaml, model.d=256]\n");
  const std::string error = error_of([&] { matched(impossible, Equal::parameters, Change::ff); });
  CHECK(error.find("big: ") == 0);
  CHECK(error.find(" parameters even with model.ff=1, more than the ") != std::string::npos);
}

TEST_CASE("comparison: the accuracy comes from the evaluation with the least loss") {
  const ScratchFolder folder;
  folder.write("run/metrics.jsonl",
      "{\"step\":1,\"tokens\":100,\"val_loss\":0.75,\"val_accuracy\":0.5,\"tokens_per_s\":50,\"peak_bytes\":10}\n"
      "{\"step\":2,\"tokens\":200,\"val_loss\":0.5,\"val_accuracy\":0.75,\"tokens_per_s\":50,\"peak_bytes\":10}\n"
      "{\"step\":3,\"tokens\":300,\"val_loss\":0.625,\"val_accuracy\":0.875,\"tokens_per_s\":50,\"peak_bytes\":10}\n");
  folder.write("run/config.yaml", "steps: 3\n");
  const Outcome run = read_outcome(folder / "run", 7);
  CHECK(run.evaluations[2].accuracy == 0.875);
  CHECK(run.best().accuracy == 0.75);
  Comparison classifiers = known();
  for (Contestant& model : classifiers.models) {
    model.config.model.family = family_of<Classifier>;
    for (Outcome& each : model.outcomes)
      for (Evaluation& evaluation : each.evaluations) evaluation.accuracy = each.seed == 1 ? 0.75 : 0.5;
  }
  const std::vector<Cells> cells = cells_of(classifiers);
  CHECK(cells[0][8] == "accuracy");
  CHECK(cells[0][9] == "95% ±");
  CHECK(cells[1][8] == "0.6250");
  CHECK(cells[1][9] == "±1.5883");
  const Panel accuracies = charts_of(classifiers)[0].panels.at(1);
  CHECK(accuracies.title == "validation accuracy");
  CHECK(accuracies.curves[0].points[1].y == 0.625);
  CHECK(accuracies.curves[0].points[1].half_width == doctest::Approx(1.5883).epsilon(1e-4));
  const Json row = Json::parse(json_of(classifiers))["models"][0];
  CHECK(row["accuracy"] == 0.625);
  CHECK(row["accuracy_interval_95_half_width"].get<double>() == doctest::Approx(1.5883).epsilon(1e-4));
  classifiers.models[1].outcomes[1].evaluations[1].accuracy = kNotMeasured;  // a run of an older version
  CHECK(cells_of(classifiers)[0][8] == "tokens/s");
}

TEST_CASE("comparison: the records of a run") {
  const ScratchFolder folder;
  folder.write("run/metrics.jsonl",
      "{\"step\":1,\"tokens\":100,\"train_loss\":4,\"val_loss\":null,\"tokens_per_s\":50,\"peak_bytes\":10}\n"
      "{\"step\":2,\"tokens\":200,\"train_loss\":3,\"val_loss\":2.5,\"tokens_per_s\":100,\"peak_bytes\":30}\n"
      "{\"step\":3,\"tokens\":300,\"train_loss\":3,\"val_loss\":2.75,\"tokens_per_s\":200,\"peak_bytes\":20}\n");
  const std::string first = "ricci 0.3.0, commit 1a2b3c4d5e, g++ 12.2.0, seed 7",
                    later = "after step 2: ricci 0.3.0, commit 2b3c4d5e6f, g++ 12.2.0, seed 7";
  folder.write("run/config.yaml", "# " + first + "\n# a note\n# " + later + "\nsteps: 3\n");
  const Outcome run = read_outcome(folder / "run", 7);
  CHECK(run.seed == 7);
  CHECK(run.builds == std::vector<std::string>{first});
  CHECK(run.seconds == doctest::Approx(2 + 1 + 0.5));
  CHECK(run.tokens_per_second == 100);
  CHECK(run.peak_bytes == 30);
  CHECK(run.best().nats == 2.5);
  REQUIRE(run.evaluations.size() == 2);
  CHECK(run.evaluations[0].tokens == 200);
  CHECK(run.evaluations[0].seconds == doctest::Approx(3));
  CHECK(std::isnan(run.evaluations[0].accuracy));
  folder.write("none/config.yaml", "steps: 1\n");
  folder.write("none/metrics.jsonl", "{\"step\":1,\"tokens\":100,\"val_loss\":null,\"tokens_per_s\":50,\"peak_bytes\":10}\n");
  CHECK(error_of([&] { read_outcome(folder / "none", 1); }) == (folder / "none/metrics.jsonl") + ": the validation loss was not measured");
}

TEST_CASE("comparison: table, JSON and drawing of known numbers") {
  const std::vector<Cells> cells = cells_of(known());
  REQUIRE(cells.size() == 3);
  CHECK(cells[0] == Cells{"model", "changed", "parameters", "GFLOP/step", "vs first", "memory", "nats/token", "95% ±", "perplexity",
                        "tokens/s", "seconds"});
  CHECK(cells[1] == Cells{"vanilla", "", "1,000", "0.00", "+0.0%", "2.9 MiB", "3.2500", "±3.1766", "25.79", "50", "4.0"});
  Comparison planned = known();  // before training the table has only plans
  for (Contestant& model : planned.models) model.outcomes.clear();
  CHECK(cells_of(planned)[1] == Cells{"vanilla", "", "1,000", "0.00", "1.9 MiB", "+0.0%"});
  const Json plan = Json::parse(json_of(planned))["models"][0];
  CHECK(plan["parameters"] == 1000);
  for (const char* key : {"least_nats", "deviation", "perplexity", "runs"}) CHECK(!plan.contains(key));
  CHECK(cells[2][1] == "model.ff=24");
  CHECK(cells[2][4] == "+1.0%");
  CHECK(text_of(report_of(known())).starts_with("small\nmodel     changed      parameters"));
  const Json json = Json::parse(json_of(known()));
  CHECK(json["command"] == "ricci compare small.yaml");
  CHECK(json["models"][1]["least_nats"] == 2);
  CHECK(text_of(report_of(known())).ends_with(" minus vanilla: -1.2500 ±3.1766 nats/token (95%, seed by seed)"));
  CHECK(json["models"][1]["difference_from_first"] == -1.25);
  CHECK(json["models"][1]["difference_interval_95_half_width"].get<double>() == doctest::Approx(3.1766).epsilon(1e-4));
  CHECK(!json["models"][0].contains("difference_from_first"));
  CHECK(json["models"][0]["interval_95_half_width"].get<double>() == doctest::Approx(3.1766).epsilon(1e-4));
  CHECK(json["models"][0]["runs"][1]["builds"] == std::vector<std::string>{"ricci 0.3.0, commit 2"});
  CHECK(json["models"][1]["perplexity"] == std::exp(2.0));
  CHECK(json["eval_from"] == 0);
  CHECK(json["models"][0]["runs"][1]["evaluations"][0]["nats"] == 4.5);
  const std::vector<Chart> charts = charts_of(known());  // each with its own x axis
  REQUIRE(charts.size() == 3);
  CHECK(charts[0].panels[0].curves[0].points[0].x == 100);
  CHECK(charts[0].panels[0].curves[0].points[0].y == 4.25);
  CHECK(charts[1].panels[0].curves[0].points[1].x == 4);
  CHECK(charts[2].panels[0].curves[1].points[0].x == 3e6 / (1 << 20));
  CHECK(charts[2].panels[0].curves[0].points[0].half_width == doctest::Approx(3.1766).epsilon(1e-4));
  const std::string page = page_of(report_of(known()));
  CHECK(page.find("seconds of training") != std::string::npos);
  CHECK(page.find("top<down") == std::string::npos);
}

TEST_CASE("comparison: the title and the JSON say which tokens are scored") {
  Comparison scored = known();
  CHECK(report_of(scored).title == "small");
  for (Contestant& model : scored.models) model.config.eval_from = 15, model.config.context = 64;
  CHECK(report_of(scored).title == "small; losses from position 15 of each window of 64");
  CHECK(Json::parse(json_of(scored))["eval_from"] == 15);
}

TEST_CASE("comparison: a loss of something else than the next token has another unit and no perplexity") {
  Comparison classifiers = known(), coarse = known();
  for (Contestant& model : classifiers.models) model.config.model.family = family_of<Classifier>;
  for (Contestant& model : coarse.models) model.config.model.family = family_of<Coarse>;
  CHECK(cells_of(classifiers)[0] ==
        Cells{"model", "changed", "parameters", "GFLOP/step", "vs first", "memory", "nats/document", "95% ±", "tokens/s", "seconds"});
  CHECK(cells_of(classifiers)[1] == Cells{"vanilla", "", "1,000", "0.00", "+0.0%", "2.9 MiB", "3.2500", "±3.1766", "50", "4.0"});
  CHECK(cells_of(coarse)[0][6] == "nats/token");
  CHECK(cells_of(coarse)[0].size() == cells_of(classifiers)[0].size());
  CHECK(!Json::parse(json_of(coarse))["models"][0].contains("perplexity"));
  CHECK(charts_of(classifiers)[0].panels[0].unit == "nats per document, mean of 2 seeds, 95% interval");
}

TEST_CASE("statistics: means, deviations and intervals") {
  CHECK(mean_spread({2, 4, 6}).mean == doctest::Approx(4));
  CHECK(mean_spread({2, 4, 6}).deviation == doctest::Approx(2));
  CHECK(mean_spread({5}).deviation == 0);
  CHECK(mean_spread({5}).half_width == 0);
  CHECK(mean_spread({2, 4, 6}).half_width == doctest::Approx(4.968276).epsilon(1e-4));  // scipy.stats.t.interval(0.95, 2, 4, 2 / sqrt(3))
}

TEST_CASE("statistics: Student's t") {  // scipy.stats.t.ppf(0.975, n)
  constexpr struct {
    size_t n;
    double t;
  } kKnown[] = {{1, 12.706205}, {4, 2.776445}, {10, 2.228139}, {11, 2.200985}, {15, 2.131450}, {30, 2.042272}, {1000, 1.962339}};
  for (const auto& [n, t] : kKnown) CHECK(student_t(n) == doctest::Approx(t).epsilon(2e-3));
  for (size_t n = 2; n < 40; ++n) CHECK(student_t(n) < student_t(n - 1));
  CHECK(error_of([] { student_t(0); }) == "student_t: 0 degrees of freedom, expected at least 1");
}
