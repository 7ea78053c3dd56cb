// Keys whose values follow from other keys: they are written as what was said of them, and follow the keys of another config.
#include <doctest/doctest.h>

#include "apps/run/config/config.h"
#include "apps/run/config/train_config.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

using Words = std::vector<std::string>;

TrainConfig read(const Words& overrides) { return load_config<TrainConfig>("", overrides); }

// The config as to_yaml writes it, read again with other overrides.
TrainConfig again(const TrainConfig& config, const Words& overrides) {
  const ScratchFolder folder;
  return load_config<TrainConfig>(folder.write("config.yaml", to_yaml(config)), overrides);
}

}  // namespace

TEST_CASE("config: what follows from sizes follows from those of a config that is made of it") {
  const TrainConfig first = read({"model={family: retina, scales: [1, 4], d: 32, ctx: 16}"});
  const std::string text = to_yaml(first);
  for (const char* line : {"  ff: null  # 128\n", "  windows: []  # [0:16, 0:16]\n", "  head_groups: []  # [0, 0, 1, 1]\n",
           "\ncontext: null  # 16\n", "\nschedule_steps: null  # 2000\n"})
    CHECK_MESSAGE(contains(text, line), line);
  CHECK(to_yaml(again(first, {})) == text);
  const TrainConfig other = again(first, {"model.d=64", "model.ctx=256", "model.heads=2", "steps=3"});
  CHECK(other.model.block.ff == 256);
  CHECK(other.model.settings<Retina>().windows == std::vector<Range>{{0, 256}, {0, 256}});
  CHECK(other.model.settings<Retina>().head_groups == std::vector<int64_t>{0, 1});
  CHECK(other.context == 256);
  CHECK(other.schedule.steps == 3);
}

TEST_CASE("config: what was said stays, also where it is what would follow") {
  const TrainConfig first = read({"model.ff=512", "context=64", "model.norm=pre", "schedule_steps=2000"});
  CHECK(contains(to_yaml(first), "  ff: 512\n"));
  CHECK(contains(to_yaml(first), "  norm: pre\n"));
  CHECK(contains(to_yaml(first), "\nschedule_steps: 2000\n"));
  const TrainConfig other = again(first, {"model.d=64", "model.ctx=128", "model.preset=msa", "steps=3"});
  CHECK(other.model.block.ff == 512);
  CHECK(other.context == 64);
  CHECK(other.model.block.norm == Norm::pre);
  CHECK(other.model.block.activation == Activation::relu);
  CHECK(other.schedule.steps == 2000);
  CHECK(again(first, {"model.d=64", "model.ff=null"}).model.block.ff == 256);
}

TEST_CASE("config: one number of layers for all scales is one number for those of another config") {
  const TrainConfig first = read({"model={family: topdown, scales: [1, 4], layers: 3}"});
  CHECK(contains(to_yaml(first), "  layers: 3  # [3, 3]\n"));
  CHECK(again(first, {"model.scales=[1, 4, 16]"}).model.stack_layers.layers == std::vector<int64_t>{3, 3, 3});
}

TEST_CASE("config: a vocabulary of which nothing was said has the size of the tokenizer, whatever that is") {
  for (const char* said : {"null", "0"}) {
    TrainConfig first = read({std::string("model.vocab=") + said});
    resolve_vocab(first, 65);
    CHECK(first.model.vocab == 65);
    CHECK(contains(to_yaml(first), std::string("  vocab: ") + said + "  # 65\n"));
    CHECK(again(first, {"tokenizer=byte"}).model.vocab == 0);
  }
  TrainConfig known = read({"model.vocab=65"});
  resolve_vocab(known, 66);
  CHECK(contains(to_yaml(known), "  vocab: 65\n"));
}

TEST_CASE("config: keys that a preset or a family gives are null where nothing else was said") {
  const TrainConfig first = read({"model.preset=msa", "model.tie=true"});
  CHECK(contains(to_yaml(first), "  norm: null  # post\n"));
  CHECK(contains(to_yaml(first), "  tie: true\n"));
  const TrainConfig other = again(first, {"model.preset=gpt"});
  CHECK(other.model.block.norm == Norm::pre);
  CHECK(other.model.output.tie);
  CHECK(read({"model.preset=msa", "model.norm=pre", "model.norm=null"}).model.block.norm == Norm::post);
  const TrainConfig labels = again(read({"data=a.tsv", "format=tsv", "label_field=1", "model.family=classifier"}), {});
  CHECK_FALSE(labels.model.causal);
  CHECK(labels.sample.tokens == 0);
  CHECK(contains(to_yaml(labels), "  causal: null  # false\n"));
  CHECK(contains(to_yaml(labels), "  tokens: null  # 0\n"));
  CHECK(error_of([] { read({"model.qk_norm=null"}); }) == "command line: model.qk_norm: expected true or false, got nothing");
}
