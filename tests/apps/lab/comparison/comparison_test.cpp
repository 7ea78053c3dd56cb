// ricci-compare: its files, and models of equal size.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "apps/lab/comparison/matching.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using test_data::error_of;
using test_data::ScratchFolder;

namespace {

constexpr const char* kRun = "model: {vocab: 50, d: 16, layers: 4, heads: 2, ctx: 16}\nbatch: 2\n";

std::vector<Contestant> contestants_of(const ScratchFolder& folder, const std::string& text) {
  return read_contestants(folder.write("models.yaml", text));
}

std::string complaint(const std::string& text) {
  const ScratchFolder folder;
  const std::string error = error_of([&] { contestants_of(folder, text); });
  return error.starts_with(folder.path()) ? error.substr(folder.path().size() + 1) : error;
}

}  // namespace

TEST_CASE("comparison: the file names models, run files beside it and keys") {
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
  const auto rows = [&](const std::string& text, std::vector<std::string> common) {
    std::vector<std::string> names;
    for (const Contestant& each : with_grid(contestants_of(folder, text), common)) {
      names.push_back(each.name + ":");
      for (const std::string& word : each.overrides_and(common)) names.back() += " " + word;
    }
    return names;
  };
  using Names = std::vector<std::string>;
  CHECK(rows("a: run.yaml\nb: [run.yaml, lr=1]\n", {"steps=4", "lr=[1e-3, 3e-4]"}) ==
        Names{"a_lr_1e-3: lr=1e-3 steps=4", "a_lr_3e-4: lr=3e-4 steps=4", "b_lr_1e-3: lr=1 lr=1e-3 steps=4",
            "b_lr_3e-4: lr=1 lr=3e-4 steps=4"});
  CHECK(rows("a: run.yaml\n", {"model.d=[8, 16]", "model.mixer=[sdp, metric]"}) ==
        Names{"a_d_8_mixer_sdp: model.d=8 model.mixer=sdp", "a_d_8_mixer_metric: model.d=8 model.mixer=metric",
            "a_d_16_mixer_sdp: model.d=16 model.mixer=sdp", "a_d_16_mixer_metric: model.d=16 model.mixer=metric"});
  CHECK(rows("a: run.yaml\nb: [run.yaml, 'clip=[1, null]']\n", {}) == Names{"a:", "b_clip_1: clip=1", "b_clip_null: clip=null"});
  // Keys that take lists, unknown ones and empty lists stay as they are.
  for (const char* word : {"model.scales=[1, 4]", "model.layers=[2, 2]", "data=[a, b]", "freeze=[tok, pos]",
           "model.windows=[[0, 4], [4, 16]]", "lrr=[1, 2]", "lr=[]"})
    CHECK(rows("a: run.yaml\n", {word}) == Names{"a: " + std::string(word)});
  const auto refused = [&](const std::vector<std::string>& words) { return error_of([&] { rows("a: run.yaml\n", words); }); };
  CHECK(refused({"lr=[1, 1]"}) == "lr=[1, 1]: a_lr_1 is there twice");
  CHECK(refused({"lr=[1, [2]]"}) == "lr=[1, [2]]: lr: expected a list of values");
  CHECK(refused({"lr=[1, 2]", "lr=3"}) == "a: lr: a list of values, and then lr=3");
  CHECK(refused({"init=[runs/x, y]"}) == "init=[runs/x, y]: 'a_init_runs/x' cannot be a part of the name of a run");
  CHECK(refused({"lr=[1, 2"}).starts_with("lr=[1, 2: not YAML: "));
}

TEST_CASE("comparison: what is wrong with a file") {
  CHECK(complaint("") == "models.yaml: expected models as NAME: RUN FILE, or NAME: [RUN FILE, KEY=VALUE, ...]");
  CHECK(complaint("[a.yaml]") == "models.yaml: expected models as NAME: RUN FILE, or NAME: [RUN FILE, KEY=VALUE, ...]");
  CHECK(complaint("a: b.yaml\nc/d: e.yaml\n") == "models.yaml:2: 'c/d' cannot be a part of the name of a run");
  CHECK(complaint("\"a\\nb\": e.yaml\n") == "models.yaml:1: 'a b' cannot be a part of the name of a run");
  CHECK(complaint("..: e.yaml\n") == "models.yaml:1: '..' cannot be a part of the name of a run");
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
        [&] { matched(contestants_of(folder, "a: run.yaml\nb: [run.yaml, " + keys + "]\n"), {}, Equal::nothing, Change::width); });
  };
  CHECK(refused("batch=3") == "b: batch: 3, but a has 2: they would not read the same tokens");
  CHECK(refused("steps=10") == "b: steps: 10, but a has 2000: they would not read the same tokens");
  CHECK(refused("model.ctx=32") == "b: context: 32, but a has 16: they would not read the same tokens");
  CHECK(refused("tokenizer=byte").find("b: tokenizer: byte, but a has char") == 0);
  CHECK(refused("model.vocab=40") == "b: model.vocab: 40, but a has 50: they would not read the same tokens");
  CHECK(refused("lr=1e-3") == "no error");
}

TEST_CASE("comparison: models whose losses are of different things are an error") {
  const ScratchFolder folder;
  folder.write("run.yaml", kRun);
  folder.write("labels.tsv", "0\tno\n1\tyes\n");
  const auto compared = [&](const std::string& first, const std::string& second) {
    return error_of([&] {
      matched(contestants_of(folder, "a: [run.yaml, " + first + "]\nb: [run.yaml, " + second + "]\n"), {"sample.tokens=0"}, Equal::nothing,
          Change::width);
    });
  };
  const std::string coarse = "model.family=coarse, model.layers=1, model.scale=", scales = ", \"model.scales=[1, 4]\", model.layers=1";
  CHECK(compared("lr=1e-3", coarse + "4") ==
        "b: model.family: coarse, whose loss is of the tokens of the next cell of 4, but a has a loss of the next token");
  CHECK(compared(coarse + "4", coarse + "2") ==
        "b: model.family: coarse, whose loss is of the tokens of the next cell of 2, but a has a loss of the tokens of the next cell of 4");
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
    for (const Matched& model : matched(contestants_of(folder, models), common, Equal::nothing, Change::width, only)) {
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
  CHECK(from(three, {}, {"c", "a"}) == std::vector<int64_t>{3, 3});  // whichever of them are chosen
  CHECK(from(three, {"eval_from=5"}) == std::vector<int64_t>{5, 5, 5});
  CHECK(from("a: run.yaml\nb: " + topdown + "\"model.scales=[1, 4]\"]\n") == std::vector<int64_t>{0, 0});
  CHECK(from("a: [run.yaml, eval_from=7]\nb: run.yaml\n") == std::vector<int64_t>{7, 7});
  CHECK(error_of([&] { from("a: run.yaml\nb: " + full + "\"model.scales=[1, 16]\", model.shift=block]\n"); }) ==
        "b: context: 16, too short: its loss counts no token of it");
  const auto sorter = [&](const std::string& scales) {
    return error_of([&] {
      from(
          "a: run.yaml\nb: " + full + scales + "]\n", {"data=sorter", "sort_length=7", "model.ctx=13", "model.vocab=0", "sample.tokens=0"});
    });
  };
  CHECK(sorter("\"model.scales=[1, 4]\"") == "no error");
  CHECK(sorter("\"model.scales=[1, 8]\"") == "b: its loss counts the positions of a row from 7 on, but the loss of a from 6 on");
}

TEST_CASE("comparison: the file's first model is what others are made equal to, chosen or not") {
  const ScratchFolder folder;
  folder.write("run.yaml", kRun);
  const std::vector<Contestant> all = contestants_of(folder, "a: run.yaml\nb: [run.yaml, model.layers=2]\nc: [run.yaml, model.layers=1]\n");
  const std::vector<Matched> three = matched(all, {}, Equal::parameters, Change::ff),
                             two = matched(all, {}, Equal::parameters, Change::ff, {"c", "b"});
  REQUIRE(three.size() == 3);
  REQUIRE(two.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(two[i].name == three[i + 1].name);
    CHECK(two[i].changed == three[i + 1].changed);
    CHECK(two[i].beside_first == three[i + 1].beside_first);
  }
  CHECK(three[0].beside_first == 1);
  CHECK(!two[0].changed.empty());
  CHECK(two[0].beside_first == static_cast<double>(three[1].plan.parameters) / static_cast<double>(three[0].plan.parameters));
  CHECK(error_of([&] { matched(all, {}, Equal::nothing, Change::ff, {"aa"}); }) == "--only: no model is called 'aa', the nearest is 'a'");
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
  const std::vector<Contestant> all = contestants_of(
      folder, "a: run.yaml\nb: [run.yaml, model.family=topdown, \"model.scales=[1, 4]\", \"model.layers=[1, 1]\", model.d=20]\n");
  for (const Equal equal : {Equal::parameters, Equal::flops, Equal::memory})
    for (const auto& [change, close] : {std::pair{Change::width, 0.1}, {Change::ff, 0.02}, {Change::layers, 0.3}}) {
      CAPTURE(std::string(name_of(equal)));
      const std::string changed(name_of(change));
      CAPTURE(changed);
      const std::vector<Matched> models = matched(all, {"model.heads=1"}, equal, change);
      const std::vector<Matched> as_they_are = matched(all, {"model.heads=1"}, Equal::nothing, change);
      CHECK(models[0].changed.empty());
      CHECK(models[0].overrides == std::vector<std::string>{"model.heads=1"});
      CHECK(as_they_are[1].changed.empty());
      CHECK(!models[1].changed.empty());
      CHECK(models[1].overrides.back() == models[1].changed);
      const double first = amount_of(models[0].plan, equal), second = amount_of(models[1].plan, equal);
      CHECK(std::abs(second / first - 1) < close);
      CHECK(models[1].beside_first == second / first);
      CHECK(std::abs(second - first) <= std::abs(amount_of(as_they_are[1].plan, equal) - first));
    }
  CHECK(matched(all, {"model.heads=4"}, Equal::parameters, Change::width)[1].config.model.d % 4 == 0);
  for (const char* fraction : {"1", "0.5"}) {
    const std::string keys = "model.preset=llama, model.rope_fraction=" + std::string(fraction) + ", model.d=24";
    const std::vector<Contestant> turning = contestants_of(folder, "a: [run.yaml, model.d=64]\nb: [run.yaml, " + keys + "]\n");
    const Matched model = matched(turning, {"model.heads=2"}, Equal::parameters, Change::width)[1];
    CHECK(model.config.model.d % 4 == 0);
    CHECK(std::abs(model.beside_first - 1) < 0.2);
  }
  const auto impossible = contestants_of(folder, "a: run.yaml\nbig: [run.yaml, model.d=256]\n");
  const std::string error = error_of([&] { matched(impossible, {}, Equal::parameters, Change::ff); });
  CHECK(error.find("big: ") == 0);
  CHECK(error.find(" parameters even with model.ff=1, more than the ") != std::string::npos);
}
