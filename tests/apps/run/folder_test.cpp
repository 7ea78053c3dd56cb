// The folder of a run: it belongs to one run at a time; the account that a file gives of its training, and the keys that are compared; the
// words of the user, and the config.yaml of a run that goes on; reports of the time that is left and of evaluations, computed by hand.
#include <doctest/doctest.h>

#include <filesystem>
#include <limits>
#include <optional>
#include <vector>

#include "apps/run/config.h"
#include "apps/run/evaluation.h"
#include "apps/run/places.h"
#include "apps/run/record.h"
#include "apps/run/run_report.h"
#include "core/files/file.h"
#include "core/memory/memory.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;
namespace fs = std::filesystem;

namespace {

TrainConfig with_keys(const std::vector<std::string>& overrides) { return load_config<TrainConfig>("", overrides); }

// The error, or the warning, of comparing a file of such metadata.
std::string compared(const Metadata& metadata, const std::vector<std::string>& now, const Tokenizer& tokenizer, Compare what) {
  const ScratchFolder folder;
  save_safetensors(folder / "a", {}, metadata);
  std::string warning;
  const std::string error = error_of([&] {
    check_provenance(SafetensorsFile(folder / "a"), with_keys(now), &tokenizer, what, [&](const std::string& line) { warning = line; });
  });
  std::string said = warning.empty() ? error : "warning: " + warning;
  const size_t path = said.find(folder / "a");
  return path == said.npos ? said : said.replace(path, (folder / "a").size(), "FILE");
}

// 12 tokens of 0.5 nats each are 6 nats.
ScoredRun scored(const char* run, int64_t words) {
  ScoredRun s{run, "a.txt", 16, 4, "", {}, TextSize{.bytes = 40, .words = words}};
  s.result.nats_per_token = 0.5, s.result.tokens = 12;
  return s;
}

}  // namespace

TEST_CASE("run lock: one at a time, and the folder of a run that never began is removed again") {
  const ScratchFolder scratch;
  const std::string path = scratch / "runs/a";
  {
    const RunLock lock(path);
    CHECK(fs::is_directory(path));
    CHECK(error_of([&] { RunLock second(path); }) == path + ": another ricci-train is at work in it");
    CHECK(fs::is_directory(path));
  }
  CHECK_FALSE(fs::exists(scratch / "runs"));
  fs::create_directory(scratch / "runs");
  { const RunLock lock(path); }
  CHECK(fs::exists(scratch / "runs"));
  CHECK_FALSE(fs::exists(path));
  fs::create_directory(path);
  { const RunLock lock(path); }
  CHECK(fs::exists(path));  // it was there before
}

TEST_CASE("run lock: a run keeps its number, two runs have two") {
  const ScratchFolder scratch;
  const auto number = [&](const std::string& name) {
    RunLock lock(scratch / name);
    lock.begin();
    lock.check();
    return read_text(scratch / (name + "/run_id"));
  };
  const std::string first = number("a");
  CHECK(first.size() == 33);
  CHECK(number("a") == first);
  CHECK(number("b") != first);
}

TEST_CASE("run lock: a folder that was removed, moved or taken over") {
  const ScratchFolder scratch;
  std::optional<RunLock> lock(scratch / "a");
  lock->begin();
  fs::rename(scratch / "a", scratch / "moved");
  CHECK_NOTHROW(lock->check());
  {
    RunLock successor(scratch / "a");
    successor.begin();
    CHECK_NOTHROW(lock->check());
    CHECK_NOTHROW(successor.check());
  }
  fs::remove(scratch / "moved/run_id");
  CHECK(error_of([&] { lock->check(); }) == scratch / "a" + ": its files were removed or replaced while this run was at work in it");
  fs::copy_file(scratch / "a/run_id", scratch / "moved/run_id");
  CHECK(error_of([&] { lock->check(); }) == scratch / "a" + ": its files were removed or replaced while this run was at work in it");
  fs::remove_all(scratch / "moved");
  CHECK(error_of([&] { lock->check(); }) == scratch / "a" + ": the folder was removed while this run was at work in it");
  lock.reset();
  CHECK(fs::exists(scratch / "a/run_id"));
}

TEST_CASE("provenance: the keys that shape the model, and the tokenizer") {
  const CharTokenizer tokenizer("abc");
  const Metadata told = provenance(with_keys({"seed=1"}), &tokenizer, Compare::model);
  const auto compare = [&](const std::vector<std::string>& now) { return compared(told, now, tokenizer, Compare::model); };
  CHECK(compare({"seed=1"}) == "no error");
  CHECK(compare({"seed=2", "lr=0.5", "batch=3", "steps=9", "data=other"}) == "no error");
  CHECK(compare({"model.heads=2"}) == "FILE: it was trained with model.heads: 4, not 2");
  CHECK(compare({"model.layers=2"}) == "FILE: it was trained with model.layers: 4, not 2");
  CHECK(compare({"context=8"}) == "FILE: it was trained with context: 64, not 8");
  CHECK(compare({"model.vocab=3"}) == "no error");  // 0: the tokenizer's
  CHECK(compared(told, {}, CharTokenizer("acb"), Compare::model) == "FILE: it was trained with another tokenizer than the one beside it");
  CHECK(contains(compared(told, {}, ByteTokenizer(), Compare::model), "model.vocab: 3, not 256"));
}

TEST_CASE("provenance: every key that may not change while a run goes on") {
  const ByteTokenizer tokenizer;
  const Metadata told = provenance(with_keys({"seed=7", "data=a.txt"}), &tokenizer, Compare::training);
  const auto compare = [&](const std::vector<std::string>& now, Compare what = Compare::training) {
    return compared(told, now, tokenizer, what);
  };
  CHECK(compare({"seed=7", "data=a.txt"}) == "no error");
  CHECK(compare({"seed=7", "data=a.txt", "steps=9", "threads=3", "name=other", "eval_every=2", "sample.seed=4"}) == "no error");
  CHECK(compare({"seed=8", "data=a.txt"}) == "FILE: it was trained with seed: 7, not 8");
  CHECK(compare({"seed=7", "data=b.txt"}) == "no error");  // texts are compared by their contents
  CHECK(compare({"seed=7", "data=a.txt", "lr=0.5"}) == "FILE: it was trained with lr: 0.001, not 0.5");
  CHECK(compare({"seed=8", "lr=0.5"}, Compare::model) == "no error");
  CHECK(compare({"model.d=64"}, Compare::model) == "FILE: it was trained with model.d: 128, not 64");
}

TEST_CASE("provenance: what other versions tell, and what is no text") {
  const ByteTokenizer tokenizer;
  CHECK(compared({{"format", "ricci"}}, {}, tokenizer, Compare::model) ==
        "warning: FILE: it does not name what it was trained with; the config and the tokenizer beside it are believed");
  Metadata told = provenance(with_keys({}), &tokenizer, Compare::model);
  told["config"] += "model.of_the_future: 3\nno key\n";
  CHECK(compared(told, {}, tokenizer, Compare::model) == "no error");
  const Metadata odd = provenance(with_keys({"data=\"caf\\xe9\\n\\\"b\""}), &tokenizer, Compare::training);
  CHECK(compared(odd, {"data=\"caf\\xe9\\n\\\"b\""}, tokenizer, Compare::training) == "no error");
  TrainConfig bytes = with_keys({});
  bytes.data = {"caf\xe9.txt"};  // no UTF-8, as paths may be
  const ScratchFolder folder;
  CHECK_NOTHROW(save_safetensors(folder / "a", {}, provenance(bytes, &tokenizer, Compare::training)));
}

TEST_CASE("said: config.yaml has lines about builds on top, once for each that went on") {
  const TrainConfig config = load_config<TrainConfig>("");
  const std::string keys = to_yaml(config), first = config_file_text(config, "", "", 0);
  CHECK(first.starts_with("# ricci 0."));
  CHECK(contains(first.substr(0, first.find('\n')), ", commit "));
  CHECK(first.substr(first.find('\n') + 1) == keys);
  CHECK(config_file_text(config, first, keys, 5) == first);
  const std::string other = "# commit 0000000000, another build\n" + keys, second = config_file_text(config, other, keys, 5);
  CHECK(second.starts_with("# commit 0000000000, another build\n# after step 5: ricci 0."));
  CHECK(second.ends_with("\n" + keys));
  CHECK(config_file_text(config, second, keys, 7) == second);
  const std::string noted = "# commit 0000000000, another build\n# my own words\n" + keys + "# the end\n";
  const std::string third = config_file_text(config, noted, keys, 5);
  CHECK(third.starts_with("# commit 0000000000, another build\n# after step 5: ricci 0."));
  CHECK(third.ends_with("\n# my own words\n" + keys + "# the end\n"));
  CHECK(config_file_text(config, third, keys, 7) == third);
}

TEST_CASE("said: a config.yaml that somebody edited is kept where its keys change") {
  const ScratchFolder scratch;
  const Folder folder(scratch.path());
  TrainConfig config = load_config<TrainConfig>("");
  write_config(folder, config, "", 0);
  const std::string keys = to_yaml(config), noted = read_text(scratch / "config.yaml") + "# mine\n";
  write_file_atomically(FilePlace(scratch / "config.yaml"), noted);
  write_config(folder, config, keys, 3);
  CHECK(read_text(scratch / "config.yaml") == noted);
  CHECK_FALSE(OpenFile::find(FilePlace(scratch / "config.edited.yaml")));
  config.steps = 9;
  write_config(folder, config, keys, 3);
  CHECK(contains(read_text(scratch / "config.yaml"), "\nsteps: 9\n"));
  CHECK(read_text(scratch / "config.edited.yaml") == noted);
}

TEST_CASE("said: the run file byte for byte, and the command line") {
  const ScratchFolder scratch;
  const Folder folder(scratch.path());
  const std::string yaml = "lr: 1e-2 # \xff, not UTF-8\r\n\n  \t#\n";
  write_said(folder, {yaml, {"model.layers=6", "~lr", "sample.prompt=\"a\\n\"", "name=a b\n"}});
  CHECK(read_text(scratch / "run.yaml") == yaml);
  const std::string head = "# the keys of the command line, in its order; beside it the run file, as it was given: run.yaml\n";
  const std::string list = "- \"model.layers=6\"\n- \"~lr\"\n- \"sample.prompt=\\\"a\\\\n\\\"\"\n- \"name=a b\\n\"\n";
  CHECK(read_text(scratch / "overrides.yaml") == head + list);
  write_said(folder, {{}, {"steps=9"}, true});  // it goes on by its folder
  CHECK(read_text(scratch / "run.yaml") == yaml);
  CHECK(read_text(scratch / "overrides.yaml") == head + list + "- \"steps=9\"\n");
  write_said(folder, {});
  CHECK_FALSE(OpenFile::find(FilePlace(scratch / "run.yaml")));
  CHECK_FALSE(OpenFile::find(FilePlace(scratch / "overrides.yaml")));
}

// A step has 2 batches of 3 sequences of 5 tokens, 30 in all, and takes 30 s. An evaluation of 90 tokens then takes 30 s too.
TEST_CASE("run report: the time that is left, with the evaluations") {
  TrainConfig config;
  config.steps = 100, config.accumulation = 2, config.batch = 3, config.context = 5, config.eval_every = 40;
  // 100 steps, and evaluations behind the steps 40, 80 and 100.
  CHECK(expected_line(config, 0, 30, 90) == "about 51:30, of which 1:30 for 3 evaluations; 20:00 to the next one");
  CHECK(expected_line(config, 5, 30, 90) == "about 49:00, of which 1:30 for 3 evaluations; 17:30 to the next one");
  CHECK(expected_line(config, 40, 30, 90) == "about 31:00, of which 1:00 for 2 evaluations; 20:00 to the next one");
  // The next one is the last, which does not wait for 40 steps more.
  CHECK(expected_line(config, 85, 30, 90) == "about 8:00, of which 0:30 for 1 evaluation; 7:30 to the next one");
  config.eval_every = 0;
  CHECK(expected_line(config, 50, 30, 9000) == "about 1:15:00, of which 50:00 for 1 evaluation; 25:00 to the next one");
  CHECK(expected_line(config, 50, 1, 30) == "");
}

TEST_CASE("run report: an evaluation of a classifier tells its accuracy") {
  Confusion confusion(2);
  for (int64_t i = 0; i < 1500; ++i) confusion.add(0, i < 813 ? 0 : 1);
  const Evaluation evaluation{.nats_per_token = 0.687, .tokens = 1500, .targets = 1500, .confusion = confusion};
  CHECK(evaluation_line(2000, 0.69314, evaluation) == "step 2,000: train 0.6931, validation 0.6870, accuracy 0.5420 (1,500 documents)");
  // The longest that are likely fit on a terminal of 80 columns.
  CHECK(evaluation_line(100'000, 5.12345, {.nats_per_token = 5.1, .tokens = 99'999}).size() <= 80);
}

TEST_CASE("run report: the memory of a GPU that tensors had and that its pool holds") {
  CHECK(memory_line(int64_t{3} << 29, int64_t{2} << 30) == "at most 1.5 GiB of tensors, 2.0 GiB reserved");
  CHECK_FALSE(reserved_bytes(Device::cpu).has_value());
}

TEST_CASE("evaluation: bits per byte, and perplexity per word") {
  const ScoredRun s = scored("runs/a", 3);
  CHECK(s.result.bits_per_byte(40) == doctest::Approx(6 / 0.69314718055994531 / 40).epsilon(1e-14));
  CHECK(s.result.word_perplexity(3) == doctest::Approx(7.38905609893065).epsilon(1e-14));  // e^2
  CHECK(s.result.word_perplexity(12) == doctest::Approx(s.result.perplexity()).epsilon(1e-14));
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

TEST_CASE("a run that was scored: a line, a table, JSON") {
  ScoredRun a = scored("runs/a", 3), b = scored("runs/longer", 100);
  a.context_note = " (trained with 8)";
  CHECK(line_of(a) == "a.txt: 12 tokens, context 16 (trained with 8), stride 4: 0.5000 nats per token, perplexity 1.649, 0.2164 bits per "
                      "byte, word perplexity 7.39");
  b.result.tokens = 1200, b.text = "b.txt";
  ScoredRun sorter = a;
  sorter.stride = {};
  CHECK(line_of(sorter).starts_with("a.txt: 12 tokens, context 16 (trained with 8): 0.5000 nats"));
  CHECK(text_of(std::vector{sorter, a}).find("       16       -      0.5000") != std::string::npos);
  CHECK(json_of(std::vector{sorter}).find("stride") == std::string::npos);
  CHECK(text_of(std::vector{a, b}) == "run          tokens  context  stride  nats/token  perplexity  bits/byte  word perplexity  text\n"
                                      "runs/a           12       16       4      0.5000       1.649     0.2164             7.39  a.txt\n"
                                      "runs/longer   1,200       16       4      0.5000       1.649    21.6404           403.43  b.txt");
  b.has_words = false;  // of characters
  CHECK(text_of(std::vector{a, b}).find("403.43") == std::string::npos);
  CHECK(text_of(std::vector{b, b}).find("word perplexity") == std::string::npos);
  CHECK(json_of(std::vector{b}).find("\"word_perplexity\": 403.4") != std::string::npos);
  a.result.nats_per_token = std::numeric_limits<double>::infinity();
  a.text = "bad \xff";
  CHECK(json_of(std::vector{a}) ==
        "[\n {\n  \"run\": \"runs/a\",\n  \"text\": \"bad \xef\xbf\xbd\",\n  \"tokens\": 12,\n  \"context\": 16,\n  \"stride\": 4,\n"
        "  \"nats_per_token\": null,\n  \"perplexity\": null,\n  \"bytes\": 40,\n  \"bits_per_byte\": null,\n  \"words\": 3,\n  "
        "\"word_perplexity\": null\n }\n]");
}

TEST_CASE("the scores of a classifier as JSON") {
  Confusion confusion(2);
  for (const auto& [target, predicted] : {std::pair{0, 0}, {0, 0}, {0, 1}, {1, 1}}) confusion.add(target, predicted);
  CHECK(json_of(Evaluation{.nats_per_token = 0.25, .confusion = confusion}) ==
        R"({"sequences":4,"nats_per_sequence":0.25,"accuracy":0.75,"macro_precision":0.75,"macro_recall":0.8333333333333333,)"
        R"("macro_f1":0.7333333333333334,"confusion":[[2,1],[0,1]]})");
}
