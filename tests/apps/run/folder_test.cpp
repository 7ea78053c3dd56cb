// The folder of a run: one training at a time; config.yaml with the user's keys; the metadata of its files, and the comparison with them;
// reports of evaluations, computed by hand.
#include <doctest/doctest.h>

#include <filesystem>
#include <vector>

#include "apps/run/batches.h"
#include "apps/run/config.h"
#include "apps/run/loop.h"
#include "apps/run/run.h"
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

// Leaves a run in scratch/a that has done two steps.
void train_two_steps(const ScratchFolder& scratch, const std::vector<std::string>& more = {}) {
  RunFolder run = RunFolder::to_train(request(scratch, more));
  TrainConfig config = run.config();
  const CharTokenizer tokenizer(kLetters);
  resolve_vocab(config, tokenizer.vocab_size());
  if (is_classifier(config)) config.labels = {"no", "ja \xc3\xa4"};
  run.begin(config, &tokenizer);
  Model model(config.model);
  model.init(1);
  Optimizer optimizer(model.trained_parameters(), config.optimizer);
  TrainState state = run.resume(model, optimizer, 7);
  state.step = 2;
  run.save(model, optimizer, state);
}

// The error of a start that is to continue that run.
std::string continued(const ScratchFolder& scratch, const std::vector<std::string>& more) {
  const std::string error = error_of([&] { RunFolder::to_train(request(scratch, more)); });
  return error.starts_with(scratch / "a") ? "RUN" + error.substr((scratch / "a").size()) : error;
}

}  // namespace

TEST_CASE("a run folder: one training at a time, and a start that comes to nothing leaves no folder") {
  const ScratchFolder scratch;
  const auto start = [&] { return RunFolder::to_train(request(scratch, {})); };
  start();
  CHECK_FALSE(fs::exists(scratch / "a"));
  RunFolder first = start(), second = start();
  const CharTokenizer tokenizer(kLetters);
  first.begin(first.config(), &tokenizer);
  CHECK(error_of([&] { second.begin(second.config(), &tokenizer); }) == scratch / "a" + ": another ricci-train is at work in it");
  CHECK(error_of(start) == scratch / "a" + ": another ricci-train is at work in it");
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
  const std::string advice = "; give the new run another name with name=..., or remove the folder";
  CHECK(continued(scratch, {}) == "no error");
  CHECK(continued(scratch, {"steps=9", "threads=3", "name=other", "eval_every=2", "sample.seed=4"}) == "no error");
  CHECK(continued(scratch, {"lr=0.5"}) == "RUN: holds a run with lr: 0.001, not 0.5" + advice);
  CHECK(continued(scratch, {"seed=8"}) == "RUN: holds a run with seed: 1337, not 8" + advice);
  CHECK(continued(scratch, {"context=2"}) == "RUN: holds a run with context: 4, not 2" + advice);
  CHECK(continued(scratch, {"model.ff=8"}) == "RUN: holds a run with model.ff: 16, not 8" + advice);
  CHECK(continued(scratch, {"model.ff=16", "context=4"}) == "no error");  // the values that it had
  CHECK(continued(scratch, {"tokenizer=byte"}) == "RUN: holds a run with tokenizer: char, not byte" + advice);
  CHECK(continued(scratch, {"steps=1"}) == "RUN: has done 2 steps; steps: 1 would be fewer");
  CHECK(continued(scratch, {"data=b.txt"}) == "no error");  // texts are compared by their contents
  const std::string edited = read_text(scratch / "a/config.yaml") + "lr: 0.5\n";
  write_atomically(scratch / "a/config.yaml", edited);
  CHECK(continued(scratch, {}) == "no error");
  CHECK(error_of([&] { RunFolder::to_train(request_run(scratch / "a", {})); }) ==
        scratch / "a" + ": holds a run with lr: 0.001, not 0.5" + advice);
  write_atomically(scratch / "a/tokenizer.json", CharTokenizer("acb").to_json());
  CHECK(continued(scratch, {}) == "RUN: holds a run with another tokenizer than the one next to it" + advice);
  const ScratchFolder former;  // such vocabularies were trained by version 0.1.0
  train_two_steps(former, {"tokenizer=wordpiece"});
  CHECK(continued(former, {"tokenizer=wordpiece"}) == "no error");
}

TEST_CASE("a run folder: the names of classes that came from the data are in the metadata") {
  const ScratchFolder scratch;
  train_two_steps(scratch, {"model.family=classifier", "format=tsv", "label_field=1"});
  CHECK_FALSE(contains(read_text(scratch / "a/config.yaml"), "labels"));
  CHECK(RunFolder::open(scratch / "a").config().labels == std::vector<std::string>{"no", "ja \xc3\xa4"});
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
  CHECK(compare({}, &swapped) == "another tokenizer than the one next to it");
  const ByteTokenizer bytes;
  CHECK(compare({}, &bytes) == "model.vocab: 3, not 256");
}

TEST_CASE("provenance: values that follow from others are told from those that were given") {
  const Metadata metadata = provenance(with_keys({"model.d=8", "model.ctx=16"}), nullptr, Compare::model);
  const TextsByKey values = lines_in(metadata, "config"), following = lines_in(metadata, "following");
  CHECK(values.at("model.ff") == "32");
  CHECK(values.at("context") == "16");
  CHECK(following.at("model.ff") == "null");
  CHECK(following.at("context") == "null");
  CHECK_FALSE(following.contains("model.d"));
  CHECK(lines_in(provenance(with_keys({"model.ff=32"}), nullptr, Compare::model), "following").count("model.ff") == 0);
}

TEST_CASE("provenance: keys of other versions, and values that are not UTF-8") {
  const ByteTokenizer tokenizer;
  Metadata was = provenance(with_keys({}), &tokenizer, Compare::training);
  was["config"] += "model.of_the_future: 3\ninit_changes: []\nno key\n";
  CHECK(difference(was, with_keys({}), &tokenizer, Compare::training).empty());
  TrainConfig bytes = with_keys({"freeze=\"caf\\xe9\\n\\\"b\""});
  bytes.init = "caf\xe9";  // no UTF-8, as paths may be
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
  // The longest that are likely fit on a terminal of 80 columns.
  CHECK(evaluation_line(100'000, 5.12345, {.nats_per_token = 5.1, .tokens = 99'999}).size() <= 80);
}

TEST_CASE("a step that needs more memory than there is is refused; the batch that its message names is not") {
  constexpr int64_t kMemory = 400 << 20;
  for (const char* more :
      {"lr=1", "accumulation=100000", "model.family=topdown", "recompute=blocks", "reduce_dtype=bf16", "device=cuda_emulated"}) {
    CAPTURE(std::string(more));
    TrainConfig config =
        with_keys({"model.vocab=50", "model.d=32", "model.layers=2", "model.ctx=64", "batch=10000", "accumulation=8", more});
    const std::string error = error_of([&] { check_step(config, kMemory); });
    const size_t end = error.rfind(' ');
    REQUIRE(error.substr(0, end) ==
            "batch: 10,000 sequences of 64 tokens need more than the 400.0 MiB of memory here; the largest batch that leaves a "
            "tenth of it free is");
    config.batch = std::stoll(error.substr(end + 1));
    CHECK(config.batch > 100);
    CHECK(error_of([&] { check_step(config, kMemory); }) == "no error");
    CHECK(memory_use(config.device).peak == memory_use(config.device).current);  // records of a training tell its own peak
    config.batch += config.batch / 2;
    CHECK(error_of([&] { check_step(config, kMemory); }).starts_with("batch: "));
  }
  TrainConfig large = with_keys({"model.vocab=50", "model.d=4096", "batch=8"});
  CHECK(error_of([&] { check_step(large, 1 << 28); }) ==
        "a step of one sequence of 64 tokens needs more than the 256.0 MiB of memory here; a smaller model or context needs less");
  large.batch_invariant = true;
  CHECK(error_of([&] { check_step(large, 1 << 28); }).starts_with("a step of one sequence"));
}
