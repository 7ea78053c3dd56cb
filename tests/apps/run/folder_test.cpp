// The run folder: one process at a time; config.yaml with the user's keys; the metadata of its files, and the comparison with them; reports
// of evaluations, by hand.
#include <doctest/doctest.h>

#include <filesystem>
#include <vector>

#include "apps/run/batches.h"
#include "apps/run/config.h"
#include "apps/run/init.h"
#include "apps/run/output.h"
#include "apps/run/places.h"
#include "apps/run/run_folder.h"
#include "core/files/file.h"
#include "core/memory/memory.h"
#include "data/tokenizers/char_tokenizer.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;
namespace fs = std::filesystem;

namespace {

TrainConfig with_keys(const std::vector<std::string>& overrides) { return load_config<TrainConfig>("", overrides); }

constexpr const char* kLetters = "abc";

TrainConfig tiny(const std::vector<std::string>& more = {}) {
  std::vector<std::string> keys = {"model.d=4", "model.heads=2", "model.layers=1", "model.ctx=4", "steps=4"};
  keys.insert(keys.end(), more.begin(), more.end());
  return with_keys(keys);
}

RunRequest request(const ScratchFolder& scratch, const std::vector<std::string>& more) { return {scratch / "a", tiny(more)}; }

// Makes a run of two steps in scratch/a.
void train_two_steps(const ScratchFolder& scratch, const std::vector<std::string>& more = {}, const std::string& init = "") {
  RunFolder run = RunFolder::to_train(request(scratch, more));
  const CharTokenizer tokenizer(kLetters);
  RunParts parts{.tokenizer = &tokenizer, .init = init};
  if (is_classifier(run.config())) parts.labels = {"no", "ja \xc3\xa4"};
  run.begin(parts);
  Model model(run.model_config());
  model.init(1);
  Optimizer optimizer(model.trained_parameters(), run.config().optimizer);
  TrainState state = run.resume(model, optimizer, 7);
  state.step = 2;
  run.save(model, optimizer, state);
}

// The error of a start that continues that run.
std::string continued(const ScratchFolder& scratch, const std::vector<std::string>& more) {
  std::string error = error_of([&] { RunFolder::to_train(request(scratch, more)); });
  const std::string folder = scratch / "a";
  for (size_t at = error.find(folder); at != error.npos; at = error.find(folder, at)) error.replace(at, folder.size(), "RUN");
  return error;
}

}  // namespace

TEST_CASE("a run folder: one training at a time, and a start that comes to nothing leaves no folder") {
  const ScratchFolder scratch;
  const auto start = [&] { return RunFolder::to_train(request(scratch, {})); };
  start();
  CHECK_FALSE(fs::exists(scratch / "a"));
  RunFolder first = start(), second = start();
  const CharTokenizer tokenizer(kLetters);
  first.begin({&tokenizer});
  CHECK(error_of([&] { second.begin({&tokenizer}); }) == scratch / "a" + ": a different ricci train process is using it");
  CHECK(error_of(start) == scratch / "a" + ": a different ricci train process is using it");
}

TEST_CASE("a run folder: config.yaml has the keys that were given, and none that follow from them") {
  const ScratchFolder scratch;
  train_two_steps(scratch, {"lr=0.5", "model.kv_heads=null"});
  const std::string text = read_text(scratch / "a/config.yaml"), line = text.substr(0, text.find('\n') + 1);
  CHECK(line.starts_with("# ricci 0."));
  CHECK(contains(line, ", commit "));
  CHECK(line.ends_with(", seed 1337\n"));
  CHECK(text == line + "model:\n  ctx: 4\n  d: 4\n  layers: 1\n  heads: 2\nsteps: 4\nlr: 0.5\n");
  const TrainConfig wider = request_run(scratch / "a", {"model.d=8"}).config;
  CHECK(resolved(wider).model.block.ff == 32);
  CHECK(wider.sequence_length() == 4);
  CHECK_FALSE(request_run(scratch / "a", {"~lr"}).config.given.contains("lr"));
}

TEST_CASE("a run folder: a continued run is compared with the keys of its newest checkpoint, whatever config.yaml says") {
  const ScratchFolder scratch;
  train_two_steps(scratch);
  const std::string advice = "; name=... starts a new run, and init=RUN name=... trains this model further";
  CHECK(continued(scratch, {}) == "no error");
  CHECK(continued(scratch, {"steps=9", "threads=3", "name=other", "eval_every=2", "sample.seed=4"}) == "no error");
  CHECK(continued(scratch, {"lr=0.5"}) == "RUN: contains a run with lr: 0.001, not 0.5" + advice);
  CHECK(continued(scratch, {"seed=8"}) == "RUN: contains a run with seed: 1337, not 8" + advice);
  CHECK(continued(scratch, {"context=2"}) == "RUN: contains a run with context: 4, not 2" + advice);
  CHECK(continued(scratch, {"model.ff=8"}) == "RUN: contains a run with model.ff: 16, not 8" + advice);
  CHECK(continued(scratch, {"model.ff=16", "context=4"}) == "no error");  // the run's values
  CHECK(continued(scratch, {"tokenizer=byte"}) == "RUN: contains a run with tokenizer: char, not byte" + advice);
  CHECK(continued(scratch, {"steps=1"}) == "RUN: has already done 2 steps, more than steps = 1");
  CHECK(continued(scratch, {"data=b.txt"}) == "no error");  // texts are compared by content
  const std::string edited = read_text(scratch / "a/config.yaml") + "lr: 0.5\n";
  write_atomically(scratch / "a/config.yaml", edited);
  CHECK(continued(scratch, {}) == "no error");
  CHECK(contains(
      error_of([&] { RunFolder::to_train(request_run(scratch / "a", {})); }), "/a: contains a run with lr: 0.001, not 0.5; name="));
  write_atomically(scratch / "a/tokenizer.json", CharTokenizer("acb").to_json());
  CHECK(continued(scratch, {}) == "RUN: contains a run with a different tokenizer than the one next to it" + advice);
}

TEST_CASE("a run folder: a tokenizer is compared by its content, and one that is gone is not compared") {
  const std::string advice = "; name=... starts a new run, and init=RUN name=... trains this model further";
  const ScratchFolder scratch;
  const std::string mine = scratch.write("mine.json", CharTokenizer(kLetters).to_json());
  train_two_steps(scratch, {"tokenizer=" + mine, "data=a.txt"});
  const std::string copy = scratch.write("copy.json", read_text(mine)), other = scratch.write("other.json", CharTokenizer("abd").to_json());
  CHECK(continued(scratch, {"tokenizer=" + copy}) == "no error");
  CHECK(continued(scratch, {"tokenizer=" + other}) == "RUN: contains a run with a different tokenizer than tokenizer: " + other + advice);
  CHECK(continued(scratch, {}) == "RUN: contains a run with tokenizer: a file, not char" + advice);
  CHECK(continued(scratch, {"tokenizer=" + scratch / "no.json"}).starts_with("tokenizer: " + scratch / "no.json does not exist"));
  remove_file(mine);
  CHECK(continued(scratch, {"tokenizer=" + mine}) == "no error");
  scratch.write("mine.json", read_text(other));
  CHECK(continued(scratch, {"tokenizer=" + mine}) == "RUN: contains a run with a different tokenizer than tokenizer: " + mine + advice);
  const ScratchFolder made;
  train_two_steps(made);  // a character model
  CHECK(continued(made, {"tokenizer=" + copy}) == "no error");
  CHECK(continued(made, {"tokenizer=" + other}) == "RUN: contains a run with a different tokenizer than tokenizer: " + other + advice);
}

TEST_CASE("a run folder: the end that a run added to a tokenizer is no difference") {
  const ScratchFolder scratch;
  const auto plain = std::make_shared<CharTokenizer>(kLetters);
  const std::string file = scratch.write("plain.json", plain->to_json());
  {
    RunFolder run = RunFolder::to_train(request(scratch, {"tokenizer=" + file, "eos=document"}));
    const auto ended = with_eos(plain, Eos::document);
    run.begin({ended.get()});
    Model model(run.model_config());
    Optimizer optimizer(model.trained_parameters(), run.config().optimizer);
    run.save(model, optimizer, {.step = 2});
  }
  const std::string copy = scratch.write("copy.json", plain->to_json());
  CHECK(continued(scratch, {"tokenizer=" + copy, "eos=document"}) == "no error");
  CHECK(continued(scratch, {"tokenizer=" + copy}) == "no error");  // the end of the run
  CHECK(continued(scratch, {"tokenizer=" + copy, "eos=none"}).starts_with("RUN: contains a run with eos: document, not none;"));
}

TEST_CASE("a run folder: init is compared by its weights") {
  const std::string advice = "; name=... starts a new run, and init=RUN name=... trains this model further";
  const ScratchFolder scratch;
  const auto save = [&](const char* name, float value) {
    const Tensor x({1}, Dtype::f32);
    x.data<float>()[0] = value;
    save_safetensors(scratch / name, {{"x", x}});
    return scratch / name;
  };
  const std::string first = save("first", 1), copy = save("copy", 1), other = save("other", 2);
  train_two_steps(scratch, {"init=" + first}, hash_of_init(first));
  CHECK(continued(scratch, {"init=" + copy}) == "no error");
  CHECK(continued(scratch, {"init=" + other}) == "RUN: contains a run with different initial weights than init: " + other + advice);
  CHECK(continued(scratch, {}) == "RUN: contains a run with init: " + first + ", not none" + advice);
  remove_file(first);
  CHECK(continued(scratch, {"init=" + first}) == "no error");
  const ScratchFolder drawn;
  train_two_steps(drawn);
  CHECK(continued(drawn, {"init=" + copy}) == "RUN: contains a run with init: none, not " + copy + advice);
}

TEST_CASE("a run folder: no file of a training names a path, and config.yaml keeps what was asked for") {
  const ScratchFolder scratch;
  const std::string file = scratch.write("letters.json", CharTokenizer(kLetters).to_json());
  train_two_steps(scratch, {"tokenizer=" + file, "model.vocab=9", "init=" + file, "data=" + scratch / "a.txt"}, "0123456789abcdef");
  const std::string checkpoint = read_text(scratch / "a/checkpoints/step-00000002.safetensors");
  CHECK_FALSE(contains(checkpoint, scratch / ""));
  CHECK(contains(checkpoint, R"("init":"0123456789abcdef")"));
  const ScratchFolder asked;
  train_two_steps(asked, {"tokenizer=bpe", "model.vocab=4000"});
  CHECK(contains(read_text(asked / "a/config.yaml"), "  vocab: 4000\n"));
  const RunFolder run = RunFolder::open(asked / "a");
  CHECK(run.config().model.vocab == 4000);
  CHECK(run.model_config().vocab == 3);
  CHECK(run.load_model(Device::cpu).config().vocab == 3);
  CHECK(continued(asked, {"tokenizer=bpe", "model.vocab=3000"}) == "no error");  // also too large for this text
  CHECK(contains(continued(asked, {"tokenizer=bpe", "model.vocab=2"}), "contains a run with model.vocab: 3, not 2;"));
}

TEST_CASE("a run folder: weights with keys of an older version are no start") {
  const ScratchFolder scratch;
  save_safetensors(scratch / "alone.safetensors", {}, {{"config", "model:\n  d: 4\nmax_ranks: 4\n"}});
  CHECK(error_of([&] { load_run_file("", {"init=" + scratch / "alone.safetensors"}); }) ==
        scratch / "alone.safetensors" + ": unknown key 'max_ranks'; --help-config prints every key");
}

TEST_CASE("a run folder: the names of classes that came from the data are in the metadata") {
  const ScratchFolder scratch;
  train_two_steps(scratch, {"model.family=classifier", "format=tsv", "label_field=1"});
  CHECK_FALSE(contains(read_text(scratch / "a/config.yaml"), "labels"));
  CHECK(RunFolder::open(scratch / "a").labels() == std::vector<std::string>{"no", "ja \xc3\xa4"});
}

TEST_CASE("provenance: the keys that shape the model, and the tokenizer") {
  const CharTokenizer tokenizer(kLetters);
  const Metadata was = provenance(with_keys({"seed=1"}), &tokenizer, Compare::model);
  const auto compare = [&](const std::vector<std::string>& now, const Tokenizer* other = nullptr) {
    return difference(was, with_keys(now), other ? other : &tokenizer, Compare::model);
  };
  CHECK(compare({"seed=1"}).empty());
  CHECK(compare({"seed=2", "lr=0.5", "batch=3", "steps=9", "data=other"}).empty());
  CHECK(compare({"model.heads=2"}) == "model.heads: 4, not 2");
  CHECK(compare({"model.layers=2"}) == "model.layers: 4, not 2");
  CHECK(compare({"context=8"}) == "context: 64, not 8");
  CHECK(compare({"model.vocab=3"}).empty());  // 0: the tokenizer's
  const CharTokenizer swapped("acb");
  CHECK(compare({}, &swapped) == "a different tokenizer than the one next to it");
  const ByteTokenizer bytes;
  CHECK(compare({}, &bytes) == "model.vocab: 3, not 256");
}

TEST_CASE("provenance: values that follow from others are told from those that were given") {
  const Metadata metadata = provenance(with_keys({"model.d=8", "model.ctx=16"}), nullptr, Compare::model);
  CHECK(contains(metadata.at("config"), "\n  ff: 32\n"));
  CHECK(contains(metadata.at("config"), "\ncontext: 16\n"));
  CHECK(metadata.at("following") == "model:\n  ff: null\ncontext: null\n");
  const Settings settings = settings_in(metadata, "config");
  CHECK(find_setting(settings, "model.ff"));
  CHECK_FALSE(find_setting(settings, "data"));
  CHECK_FALSE(contains(provenance(with_keys({"model.ff=32"}), nullptr, Compare::model).at("following"), "ff"));
}

TEST_CASE("provenance: unknown keys, and values that are not UTF-8") {
  const ByteTokenizer tokenizer;
  Metadata was = provenance(with_keys({}), &tokenizer, Compare::training);
  was["config"] += "init_changes: []\n";
  CHECK(contains(error_of([&] { difference(was, with_keys({}), &tokenizer, Compare::training); }), "metadata: unknown key 'init_changes'"));
  TrainConfig bytes = with_keys({"freeze=\"caf\\xe9\\n\\\"b\""});
  bytes.init = "caf\xe9";  // not UTF-8, as is possible in paths
  const Metadata odd = provenance(bytes, &tokenizer, Compare::training);
  CHECK(difference(odd, bytes, &tokenizer, Compare::training).empty());
  const ScratchFolder folder;
  CHECK_NOTHROW(save_safetensors(folder / "a", {}, odd));
}

TEST_CASE("run report: an evaluation of a classifier tells its accuracy") {
  Confusion confusion(2);
  for (int64_t i = 0; i < 1500; ++i) confusion.add(0, i < 813 ? 0 : 1);
  const Evaluation evaluation{.nats_per_token = 0.687, .tokens = 1500, .targets = 1500, .confusion = confusion};
  CHECK(evaluation_line(2000, 0.69314, evaluation) == "step 2,000: train 0.6931, validation 0.6870, accuracy 0.5420 (1,500 documents)");
  // The longest likely lines fit on a terminal of 80 columns.
  CHECK(evaluation_line(100'000, 5.12345, {.nats_per_token = 5.1, .tokens = 99'999}).size() <= 80);
  CHECK(evaluation_line(9, 60, {.nats_per_token = 60, .tokens = 9}, 0.2534).ends_with("perplexity 1.14e+26 (9 tokens, 25.3% <unk>)"));
}

TEST_CASE("a step that needs more memory than there is is refused; the batch that its message names is not") {
  constexpr int64_t kMemory = 400 << 20;
  for (const char* more :
      {"lr=1", "accumulation=100000", "model.family=topdown", "recompute=blocks", "reduce_dtype=bf16", "device=cuda_emulated"}) {
    CAPTURE(std::string(more));
    TrainConfig config =
        with_keys({"model.vocab=50", "model.d=32", "model.layers=2", "model.ctx=64", "batch=10000", "accumulation=8", more});
    const std::string error = error_of([&] { check_step(config, config.model, kMemory); });
    const size_t end = error.rfind(' ');
    REQUIRE(error.substr(0, end) ==
            "batch: 10,000 sequences of 64 tokens need more than the 400.0 MiB of available memory; the largest batch that leaves a "
            "tenth free is");
    config.batch = std::stoll(error.substr(end + 1));
    CHECK(config.batch > 100);
    CHECK(error_of([&] { check_step(config, config.model, kMemory); }) == "no error");
    CHECK(memory_use(config.device).peak == memory_use(config.device).current);  // training records contain its own peak
    config.batch += config.batch / 2;
    CHECK(error_of([&] { check_step(config, config.model, kMemory); }).starts_with("batch: "));
  }
  TrainConfig large = with_keys({"model.vocab=50", "model.d=4096", "batch=8"});
  CHECK(error_of([&] { check_step(large, large.model, 1 << 28); }) ==
        "a step of one sequence of 64 tokens needs more than the 256.0 MiB of available memory; use a smaller model or context");
  large.batch_invariant = true;
  CHECK(error_of([&] { check_step(large, large.model, 1 << 28); }).starts_with("a step of one sequence"));
}
