// The layers of settings (the last one wins), and the values derived from given keys.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <set>

#include "apps/run/config.h"
#include "apps/run/train_config.h"
#include "core/error.h"
#include "core/files/file.h"
#include "data/tokenizers/char_tokenizer.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

TrainConfig of_keys(const std::vector<std::string>& overrides) { return load_config<TrainConfig>("", overrides); }

// Every key that is read, with derived values. Two configs are equal if these are.
std::map<std::string, std::string> keys_of(TrainConfig config) {
  config = resolved(config);
  std::map<std::string, std::string> values;
  for (const Field& field : fields_of(config))
    if (field.is_read) values[field.key] = value_text(field);
  return values;
}

// The config as to_yaml writes it, read again with other overrides.
TrainConfig again(const TrainConfig& config, const std::vector<std::string>& overrides) {
  const ScratchFolder folder;
  return load_config<TrainConfig>(folder.write("config.yaml", to_yaml(config)), overrides);
}

}  // namespace

TEST_CASE("config: values that follow from others are never written, and follow from those of another config") {
  const TrainConfig first = of_keys({"model={family: retina, scales: [1, 4], d: 32, ctx: 16}"});
  CHECK(to_yaml(first) == "model:\n  family: retina\n  ctx: 16\n  d: 32\n  scales: [1, 4]\n");
  const auto was = keys_of(first), is = keys_of(again(first, {"model.d=64", "model.ctx=256", "model.heads=2", "steps=3"}));
  CHECK(keys_of(again(first, {})) == was);
  const auto follows = [&](const char* key, const char* before, const char* after) {
    CHECK_MESSAGE(was.at(key) == before, key);
    CHECK_MESSAGE(is.at(key) == after, key);
  };
  follows("model.ff", "128", "256");
  follows("model.windows", R"(["0:16", "0:16"])", R"(["0:256", "0:256"])");
  follows("model.head_groups", "[0, 0, 1, 1]", "[0, 1]");
  follows("context", "16", "256");
  follows("schedule_steps", "null", "null");  // the steps of the new run, in the checkpoint
  CHECK(first.sequence_length() == 16);
}

TEST_CASE("config: each value that follows is a function of the config") {
  const auto model = [](const std::vector<std::string>& keys) { return of_keys(keys).model; };
  const auto ff = [](const ModelConfig& c) { return c.block.feed_forward(c.d); };
  CHECK(ff(model({"model.d=96"})) == 384);
  CHECK(ff(model({"model.d=96", "model.preset=llama"})) == 256);
  CHECK(ff(model({"model.d=96", "model.ff=100"})) == 100);
  const ModelConfig topdown = model({"model={family: topdown, scales: [1, 2, 8], layers: 3}"});
  CHECK(topdown.stack_layers.per_scale(topdown.scales) == std::vector<int64_t>{3, 3, 3});
  CHECK(model({"model.heads=8"}).settings<Sdp>().key_heads() == 8);
  CHECK(model({"model.heads=8", "model.kv_heads=2"}).settings<Sdp>().key_heads() == 2);
  CHECK(model({"model.heads=8"}).settings<Sdp>().width(128) == 16);
  CHECK(model({"model.heads=8", "model.head_width=5"}).settings<Sdp>().width(128) == 5);
  CHECK(DispatcherConfig::levels_for(model({"model={mixer: dispatcher, ctx: 65}"}).ctx) == 7);
  CHECK_FALSE(model({"model={mixer: dispatcher, ctx: 65}"}).settings<Dispatcher>().levels.has_value());
  const ModelConfig retina = model({"model={family: retina, scales: [1, 4], ctx: 32, heads: 4}"});
  CHECK(retina.settings<Retina>().every_window(retina.scales, retina.ctx) == std::vector<Range>{{0, 32}, {0, 32}});
  CHECK(retina.settings<Retina>().every_head(retina.scales, 4) == std::vector<int64_t>{0, 0, 1, 1});
  CHECK(of_keys({"model.ctx=32"}).sequence_length() == 32);
  CHECK(of_keys({"model.ctx=32", "context=5"}).sequence_length() == 5);
}

TEST_CASE("config: what was given stays, also if it is what would follow") {
  const TrainConfig first = of_keys({"model.ff=512", "context=64", "model.norm=pre", "schedule_steps=2000"});
  CHECK(to_yaml(first) == "model:\n  norm: pre\n  ff: 512\ncontext: 64\nschedule_steps: 2000\n");
  const TrainConfig other = again(first, {"model.d=64", "model.ctx=128", "model.preset=msa", "steps=3"});
  CHECK(other.model.block.ff == 512);
  CHECK(other.context == 64);
  CHECK(other.model.block.norm == Norm::pre);
  CHECK(other.model.block.activation == Activation::relu);
  CHECK(other.schedule.steps == 2000);
  const TrainConfig unset = again(first, {"model.d=64", "model.ff=null", "model.norm=null"});
  CHECK(unset.model.block.feed_forward(unset.model.d) == 256);
  CHECK_FALSE(unset.given.contains("model.ff"));
  CHECK_FALSE(unset.given.contains("model.norm"));
}

TEST_CASE("config: one number of layers for all scales is one number for those of another config") {
  const TrainConfig first = of_keys({"model={family: topdown, scales: [1, 4], layers: 3}"});
  CHECK(contains(to_yaml(first), "  layers: 3\n"));
  CHECK(keys_of(first).at("model.layers") == "[3, 3]");
  CHECK(keys_of(again(first, {"model.scales=[1, 4, 16]"})).at("model.layers") == "[3, 3, 3]");
}

TEST_CASE("config: the vocabulary size of the model follows from the tokenizer, and the config keeps what was asked for") {
  const CharTokenizer letters("abc");
  const auto size = [&](const std::vector<std::string>& keys, const Tokenizer* tokenizer) {
    const TrainConfig config = of_keys(keys);
    const std::string text = to_yaml(config);
    const ModelConfig model = model_config(config, tokenizer);
    CHECK(to_yaml(config) == text);
    CHECK(resolved(config, tokenizer).model.vocab == model.vocab);
    return model.vocab;
  };
  for (const char* given : {"model.vocab=null", "model.vocab=0", "lr=1"}) {
    CHECK(size({given}, &letters) == 3);
    CHECK(size({given, "tokenizer=letters.json"}, &letters) == 3);
    CHECK(size({given}, nullptr) == 0);
  }
  CHECK(size({"tokenizer=bpe", "model.vocab=4000"}, &letters) == 3);  // the text had no more
  CHECK(size({"tokenizer=bpe", "model.vocab=4000"}, nullptr) == 4000);
  CHECK(size({"tokenizer=letters.json", "model.vocab=64"}, &letters) == 64);  // rows without a token
  CHECK(to_yaml(of_keys({"tokenizer=bpe", "model.vocab=4000"})) == "model:\n  vocab: 4000\ntokenizer: bpe\n");
}

TEST_CASE("config: the end of documents is the tokenizer's, unless it was given") {
  const CharTokenizer plain("abc");
  const auto ended = with_eos(std::make_shared<CharTokenizer>("abc"), Eos::document);
  const auto end = [](const std::vector<std::string>& keys, const Tokenizer* tokenizer) { return resolved(of_keys(keys), tokenizer).eos; };
  CHECK(end({"format=jsonl"}, nullptr) == Eos::document);
  CHECK(end({"format=jsonl"}, &plain) == Eos::none);
  CHECK(end({}, ended.get()) == Eos::document);
  CHECK(end({"eos=none"}, ended.get()) == Eos::none);
}

TEST_CASE("config: keys that a preset or a family gives follow from another one") {
  const TrainConfig first = of_keys({"model.preset=msa", "model.tie=true"});
  CHECK(to_yaml(first) == "model:\n  preset: msa\n  tie: true\n");
  CHECK(first.model.block.norm == Norm::post);
  const TrainConfig other = again(first, {"model.preset=gpt"});
  CHECK(other.model.block.norm == Norm::pre);
  CHECK(other.model.output.tie);
  CHECK(of_keys({"model.preset=msa", "model.norm=pre", "model.norm=null"}).model.block.norm == Norm::post);
  const TrainConfig labels = again(of_keys({"data=a.tsv", "format=tsv", "label_field=1", "model.family=classifier"}), {});
  CHECK_FALSE(labels.model.causal);
  CHECK(labels.sample.tokens == 0);
  CHECK_FALSE(labels.given.contains("model.causal"));
  CHECK_FALSE(labels.given.contains("sample.tokens"));
  CHECK(error_of([] { of_keys({"model.qk_norm=null"}); }) == "command line: model.qk_norm: expected true or false, got nothing");
}

TEST_CASE("config: the last setting of a key wins, from the base over the file to the command line") {
  const ScratchFolder folder;
  folder.write("first.yaml", "lr: 1\nsteps: 1\nbatch: 1\nseed: 1\nmodel: {d: 32, heads: 2}\n");
  folder.write("second.yaml", "base: first.yaml\nsteps: 2\nbatch: 2\nseed: 2\n");
  const std::string file = folder.write("third.yaml", "batch: 3\nseed: 3\nbase: second.yaml\nmodel: {d: 64}\n");
  const TrainConfig config = load_config<TrainConfig>(file, {"seed=4", "seed=5"});
  CHECK(to_yaml(config) == "model:\n  d: 64\n  heads: 2\nbatch: 3\nsteps: 2\nlr: 1\nseed: 5\n");
  CHECK(load_config<TrainConfig>(file, {"~seed", "~lr"}).given == std::set<std::string>{"model.d", "model.heads", "batch", "steps"});
  // The preset of the file gives defaults below the keys of the base.
  folder.write("plain.yaml", "model: {activation: gelu_tanh}\n");
  const TrainConfig preset = load_config<TrainConfig>(folder.write("msa.yaml", "base: plain.yaml\nmodel: {preset: msa}\n"));
  CHECK(preset.model.block.activation == Activation::gelu_tanh);
  CHECK(preset.model.block.norm == Norm::post);
}

TEST_CASE("config: a base is next to its file, and so are the texts that it names") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "inner");
  folder.write("inner/text.txt", "abc");
  folder.write("inner/base.yaml", "data: text.txt\n");
  CHECK(load_config<TrainConfig>(folder.write("run.yaml", "base: inner/base.yaml\n")).data ==
        std::vector<std::string>{folder / "inner/text.txt"});
  CHECK(error_of([&] { load_config<TrainConfig>(folder.write("run.yaml", "base: no.yaml\n")); }) ==
        "cannot read " + (folder / "no.yaml") + ": No such file or directory");
  CHECK(error_of([&] { load_config<TrainConfig>(folder.write("run.yaml", "\nbase: [a]\n")); }) ==
        (folder / "run.yaml") + ":2: base: expected a run file, got a list");
  CHECK(error_of([&] { load_config<TrainConfig>(folder.write("run.yaml", "base: run.yaml\n")); }) ==
        (folder / "run.yaml") + ":1: base: the chain has more than 8 files");
  folder.write("0.yaml", "lr: 7\n");
  for (int i = 1; i <= 9; ++i) folder.write(format_message("{}.yaml", {i}), format_message("base: {}.yaml\n", {i - 1}));
  CHECK(load_config<TrainConfig>(folder / "8.yaml").schedule.lr == 7);
  CHECK(
      error_of([&] { load_config<TrainConfig>(folder / "9.yaml"); }) == (folder / "1.yaml") + ":1: base: the chain has more than 8 files");
  folder.write("other.yaml", "lr: 1\n");
  CHECK(error_of([&] { load_config<TrainConfig>(folder.write("run.yaml", "base: other.yaml\nbase: other.yaml\n")); }) ==
        (folder / "run.yaml") + ":2: the key base is given twice");
  folder.write("base.yaml", "lr: 1\nstpes: 2\n");
  CHECK(error_of([&] { load_config<TrainConfig>(folder.write("run.yaml", "base: base.yaml\n")); }) ==
        (folder / "base.yaml") + ":2: unknown key 'stpes', the nearest known key is 'steps'");
}

TEST_CASE("config: a config that a program has made gives the keys that differ from the defaults of its family, mixer and preset") {
  TrainConfig plain;
  give_differing(plain);
  CHECK(plain.given.empty());
  TrainConfig config = of_keys({"model.preset=llama", "model.mixer=sdp"});
  config.given.clear();
  config.model.d = 96;
  config.model.block.bias = true;  // the default of preset gpt, and not of llama
  config.model.block.ff = 300;
  give_differing(config);
  CHECK(config.given == std::set<std::string>{"model.preset", "model.d", "model.bias", "model.ff"});
  const auto keys = keys_of(config);
  CHECK(keys_of(again(config, {})) == keys);
}
