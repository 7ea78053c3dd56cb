// The run files of apps/configs: each can be read and built, and the models of papers have the sizes of the papers. Texts of YAML cost time
// and memory in proportion to their length, whatever they hold.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "apps/lab/comparison/matching.h"
#include "apps/run/config.h"
#include "apps/run/train_config.h"
#include "core/memory/dry_run.h"
#include "models/model.h"
#include "models/planning/plan.h"
#include "tests/bounded.h"
#include "tests/data/files.h"
#include "tests/sanitized.h"
#include "tests/skip.h"

using namespace ricci;
using namespace ricci::apps;
namespace fs = std::filesystem;
using namespace test_data;

namespace {

const fs::path kConfigs = fs::path(RICCI_TESTS_FOLDER) / ".." / "apps" / "configs";

TrainConfig config_of(const fs::path& file) { return load_config<TrainConfig>((kConfigs / file).string()); }

// With the vocabulary that the tokenizer of the run would bring.
int64_t parameters_of(const fs::path& file, int64_t vocab) {
  ModelConfig model = config_of(file).model;
  model.vocab = vocab;
  const DryRun without_memory(Device::cpu);
  return Model(model).parameter_count();
}

// True if the run file or a key behind it says where the tokenizer comes from, which then may bring the vocabulary.
bool names_tokenizer(const Contestant& one) {
  const auto names = [](const std::string& word) { return word.starts_with("tokenizer="); };
  return ("\n" + test_data::read_file(one.file)).find("\ntokenizer:") != std::string::npos ||
         std::any_of(one.overrides.begin(), one.overrides.end(), names);
}

// The tree on one line.
std::string shown(const YamlValue& value) {
  std::string all;
  for (size_t i = 0; i < value.items.size(); ++i)
    all += (i == 0 ? "" : value.kind == YamlValue::Kind::keys && i % 2 ? ": " : ", ") + shown(value.items[i]);
  switch (value.kind) {
    case YamlValue::Kind::nothing: return "nothing";
    case YamlValue::Kind::text: return "'" + value.text + "'";
    case YamlValue::Kind::list: return "[" + all + "]";
    case YamlValue::Kind::keys: return "{" + all + "}";
  }
  return "";
}

std::string tree(const std::string& text) { return shown(parse_yaml(text, "x.yaml", true)); }
std::string complaint(const std::string& text, bool has_lines = true) {
  return test::bounded_error([&] { parse_yaml(text, "x.yaml", has_lines); }, {.mebibytes = 64});
}

std::string repeated(const std::string& unit, size_t bytes) {
  std::string all;
  while (all.size() + unit.size() <= bytes) all += unit;
  return all;
}

}  // namespace

TEST_CASE("configs: each can be read and built, and a run is named after its file") {
  int files = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kConfigs)) {
    if (entry.path().extension() != ".yaml" || entry.path().parent_path().filename() == "comparisons") continue;
    const fs::path file = entry.path().lexically_relative(kConfigs);
    CAPTURE(file.string());
    ModelConfig model = config_of(file).model;
    if (model.vocab == 0) model.vocab = 100;
    CHECK_NOTHROW(check(model));
    const std::string room = file.parent_path().string();
    CHECK(config_of(file).name == (room.empty() ? "" : room + "_") + file.stem().string());
    ++files;
  }
  CHECK(files >= 44);
}

// This takes minutes under a sanitizer, and models/planning makes plans of every kind there.
TEST_CASE("configs: every model of a comparison can be planned, and has the layers of its name, which lists them from coarse to fine" *
          doctest::skip(test::kSanitized)) {
  int models = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kConfigs / "comparisons")) {
    CAPTURE(entry.path().filename().string());
    for (const Contestant& one : read_contestants(entry.path().string())) {
      CAPTURE(one.name);
      TrainConfig config = one.config();
      if (config.model.vocab == 0 && names_tokenizer(one)) config.model.vocab = 100;
      REQUIRE(config.model.vocab > 0);
      CHECK_NOTHROW(check(config.model));
      if (++models % 16 == 0 || test::everything())  // a plan takes a while
        CHECK(plan_step(config.model, config.optimizer, {1, *config.context, 1, storage_dtype(config.precision), false, Device::cpu, {}})
                  .parameters > 0);
      std::vector<int64_t> layers = config.model.stack_layers.layers;
      std::reverse(layers.begin(), layers.end());
      std::string numbers;
      for (const int64_t n : layers) numbers += "_" + std::to_string(n);
      if (one.name.starts_with("top-down_") || one.name.starts_with("bottom-up_")) CHECK(one.name.find(numbers) != std::string::npos);
      if (one.name.starts_with("vanilla_")) CHECK(one.name == "vanilla_" + std::to_string(config.model.layers));
    }
  }
  CHECK(models >= 86);
}

TEST_CASE("configs: the models of the multi-scale paper have as many parameters as its table 8 has layers") {
  const auto layers = [](int64_t n, int64_t d) { return n * (12 * d * d + 13 * d); };
  constexpr int64_t d = 768, vocab = 31300, ends = vocab * d + 2 * d + 512 * d;
  CHECK(parameters_of("bookcorpus/vanilla.yaml", vocab) == layers(12, d) + ends);
  CHECK(parameters_of("bookcorpus/retina.yaml", vocab) == layers(12, d) + ends);
  CHECK(parameters_of("wikitext103/vanilla.yaml", 33346) == layers(16, d) + 33346 * d + 2 * d + 512 * d);
  // Three more tables of positions and closing norms, three upsamplings by 4 and three maps from 2 d.
  CHECK(parameters_of("bookcorpus/topdown.yaml", vocab) ==
        layers(30, d) + ends + 3 * 2 * d + (128 + 32 + 8) * d + 3 * (4 * d * d + d) + 3 * (2 * d * d + d));
}

TEST_CASE("configs: the models of the Dispatcher paper have the published numbers of parameters") {
  // 39M and 36M with all pieces of bert-base-cased, 41M and 38M with all pieces of bert-base-uncased.
  CHECK(parameters_of("wikitext103/msa.yaml", 28'996) == 39'188'804);
  CHECK(parameters_of("wikitext103/dispatcher.yaml", 28'996) == 36'058'436);
  CHECK(parameters_of("1bw/msa.yaml", 30'522) == 40'752'954);
  CHECK(parameters_of("1bw/dispatcher.yaml", 30'522) == 37'622'586);
  // 59M with GPT-2's pieces.
  CHECK(parameters_of("openwebtext/dispatcher.yaml", 50'257) == 59'448'337);
  // 18M with the pieces of bert-base-cased that PTB needs.
  CHECK(parameters_of("ptb/msa.yaml", 8'560) == 18'241'904);
}

TEST_CASE("configs: both models of a small pair have the same size") {
  for (const std::string room : {"ptb", "wikitext2", "wikitext103", "1bw"}) {
    const int64_t msa = parameters_of(room + "/msa_small.yaml", 1000), dispatcher = parameters_of(room + "/dispatcher_small.yaml", 1000);
    CHECK(std::abs(msa - dispatcher) < msa / 1000);
  }
}

TEST_CASE("yaml: a text as a tree") {
  CHECK(tree("") == "nothing");
  CHECK(tree("# a comment") == "nothing");
  CHECK(tree("---\n") == "nothing");
  CHECK(tree("a: 1\nb: [x, 'y z', \"\\n\", null, ~, [], {}]\nc:\n  - {d: e}\n  - f:\n") ==
        "{'a': '1', 'b': ['x', 'y z', '\n', nothing, nothing, [], {}], 'c': [{'d': 'e'}, {'f': nothing}]}");
  CHECK(tree("a: &x [1, 2]\nb: *x\nc: *x\n") == "{'a': ['1', '2'], 'b': ['1', '2'], 'c': ['1', '2']}");
  const YamlValue lines = parse_yaml("a: 1\n\nb:\n  c: 2\n", "x.yaml", true);
  CHECK(lines.items[2].line == 3);
  CHECK(lines.items[3].items[0].line == 4);
}

TEST_CASE("yaml: what follows the document is an error, and not read for ever") {
  for (const char* text : {",", ",x.txt", ", ,", "{name: x}, {b: c}", "[a], [b]"}) {
    CAPTURE(text);
    CHECK(complaint(text) == "x.yaml:1: not YAML: unexpected ','; text that starts with it needs quotes");
    CHECK(complaint(text, false) == "x.yaml: not YAML: unexpected ','; text that starts with it needs quotes");
  }
  CHECK(complaint("a\n---\nb\n---\nc") == "x.yaml: expected one YAML document, got more");
  CHECK(complaint("]").find("not YAML") != std::string::npos);
  CHECK(complaint("}").find("not YAML") != std::string::npos);
  CHECK(complaint("[a]]").find("not YAML") != std::string::npos);
}

TEST_CASE("yaml: deep nesting is told as such") {
  const std::string deep = ": lists and mappings are nested more than 32 deep";
  CHECK(complaint(repeated("[", 32) + repeated("]", 32)) == "no error");
  CHECK(complaint(repeated("[", 33) + repeated("]", 33)) == "x.yaml:1" + deep);
  for (const char* unit : {"[", "{", "{a: ", "- ", "? ", "[{a: "}) {
    CAPTURE(unit);
    CHECK(complaint(repeated(unit, 100'000)) == "x.yaml:1" + deep);
  }
  std::string staircase;
  for (int i = 0; i < 40; ++i) staircase += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  CHECK(complaint(staircase) == "x.yaml:33" + deep);
}

TEST_CASE("yaml: many values, long texts, and aliases that multiply") {
  CHECK(complaint(std::string(kMaxYaml + 1, ' ')) == "x.yaml: 262145 bytes, at most 262144 are read");
  CHECK(complaint("[" + repeated("a,", 250'000) + "]").ends_with("more than 100000 values"));
  CHECK(complaint("[" + repeated("a,", 190'000) + "]") == "no error");
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 20; ++i) laughs += format_message("a{}: &a{} [", {i, i}) + repeated(format_message("*a{},", {i - 1}), 50) + "]\n";
  CHECK(complaint(laughs).ends_with("more than 100000 values"));
  CHECK(complaint("a: &a [*a]") == "x.yaml:1: an alias inside of its own anchor");
  CHECK(complaint("a: *b").find("not YAML") != std::string::npos);
}

TEST_CASE("yaml: whatever is repeated, it takes time and memory in proportion to its length") {
  const char* const units[] = {"[", "]", "{", "}", ",", ":", ": ", "- ", "-", "? ", "a", "a: ", "&a ", "*a ", "!", "!a ", "!<a> ", "|", ">",
      "|\n", "'", "\"", "\\", "%", "%TAG", "@", "#", " #", "\n", "\n ", " ", "\t", "---\n", "...\n", "~", "\r", "\xef\xbb\xbf", "\xff\xfe",
      "\x80", "a\n b\n", "? a\n: b\n", "{\\", "{'", "[:", ":'"};
  // One process tries all starts of a unit.
  for (const char* unit : units) {
    CAPTURE(unit);
    const auto try_starts = [&] {
      for (const char* start : {"", "a: {b: ["}) {
        std::string found;
        try {
          parse_yaml(start + repeated(unit, 100'000), "x.yaml", true);
        } catch (const Error& error) {
          found = error.what();
        }
        if (found.size() >= 200 || !(found.empty() || found.starts_with("x.yaml"))) fail("{}: {}", {start, found});
      }
    };
    CHECK(test::bounded_error(try_starts, {.mebibytes = 64}) == "no error");
  }
}
