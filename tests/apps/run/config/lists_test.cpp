// Run files: lists of numbers and ranges, as the models of several scales read them.
#include <doctest/doctest.h>

#include "apps/run/config/config.h"
#include "apps/run/config/train_config.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

TrainConfig read(const std::vector<std::string>& settings) { return load_config<TrainConfig>("", settings); }
std::string complaint(const std::vector<std::string>& settings) {
  return error_of([&] { read(settings); });
}

}  // namespace

TEST_CASE("config: lists of integers, one of which may stand alone") {
  const ModelConfig c = read({"model={family: topdown, scales: [1, 2, 8], layers: [3, 2, 1]}"}).model;
  CHECK(c.scales.scales == std::vector<int64_t>{1, 2, 8});
  CHECK(c.stack_layers.layers == std::vector<int64_t>{3, 2, 1});
  CHECK(read({"model={family: topdown, scales: [1, 2, 8], layers: 3}"}).model.stack_layers.layers == std::vector<int64_t>{3, 3, 3});
  CHECK(read({"model={family: retina, scales: [1, 4], layers: 3}"}).model.layers == 3);
  CHECK(complaint({"model={family: topdown, scales: [1, a]}"}) ==
        "command line: model.scales: expected integer or list of integers, got a list");
  CHECK(complaint({"model={family: topdown, layers: {a: 1}}"}) ==
        "command line: model.layers: expected integer or list of integers, got keys and values");
  CHECK(complaint({"model={family: retina, layers: [1, 2, 3, 4]}"}) == "command line: model.layers: expected integer, got a list");
  CHECK(complaint({"model.scales=[1, 2]"}) == "command line: model.scales: nothing reads it here, only family: topdown, bottomup, retina");
}

TEST_CASE("config: ranges as a text, as texts or as pairs") {
  const std::vector<Range> expected = {{0, 8}, {8, 256}};
  for (const char* windows : {"\"0:8, 8:256\"", "0:8, 8:256", "0:8,8:256", "[0:8, 8:256]", "[[0, 8], [8, 256]]", "[\"0:8\", [8, 256]]"})
    CHECK(read({"model={family: retina, scales: [1, 4]}", std::string("model.windows=") + windows}).model.settings<Retina>().windows ==
          expected);
  const auto wrong = [](const char* windows) { return complaint({"model.family=retina", std::string("model.windows=") + windows}); };
  for (const char* text : {"8", "0:8,", "0:8 8:16", "0:x", ":8", "0-8"})
    CHECK(
        wrong(text) == std::string("command line: model.windows: expected ranges as 0:8, 8:256 or [[0, 8], [8, 256]], got '") + text + "'");
  for (const char* list : {"[0, 8]", "[[0, 8, 9]]", "[[0]]", "[[0, [8]]]", "[[a, 8]]"})
    CHECK(wrong(list) == "command line: model.windows: expected ranges as 0:8, 8:256 or [[0, 8], [8, 256]], got a list");
}

TEST_CASE("config: a coarse model writes no text") {
  CHECK(read({"model.family=coarse"}).sample.tokens == 0);
  CHECK(complaint({"model.family=coarse", "sample.tokens=9"}) == "sample.tokens: 9, but model.family: coarse writes no text");
}

TEST_CASE("config: lists and ranges are written as they are read") {
  const TrainConfig written = read({"model={family: retina, scales: [1, 4], windows: \"0:8, 8:64\", head_groups: [0, 1, 1, 1]}"});
  const ScratchFolder folder;
  const TrainConfig again = load_config<TrainConfig>(folder.write("run.yaml", to_yaml(written)));
  CHECK(to_yaml(again.model) == to_yaml(written.model));
  CHECK(contains(to_yaml(written), "  windows: [\"0:8\", \"8:64\"]\n"));
  CHECK(contains(to_yaml(written), "  head_groups: [0, 1, 1, 1]\n"));
  const TrainConfig coarse = read({"model={family: topdown, scales: 1}"});
  CHECK(to_yaml(load_config<TrainConfig>(folder.write("run.yaml", to_yaml(coarse))).model) == to_yaml(coarse.model));
  const TrainConfig one = read({"model={family: retina, scales: [1], windows: \"20:48\"}"});
  CHECK(contains(to_yaml(one), "  windows: \"20:48\"\n"));  // a number to a reader of YAML 1.1, were it not for the quotes
}
