// The run files of apps/configs: each can be read and built, and the papers' models have the papers' sizes.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "apps/lab/comparison/comparison.h"
#include "apps/run/config.h"
#include "apps/run/run_folder.h"
#include "apps/run/train_config.h"
#include "core/memory/dry_run.h"
#include "models/model.h"
#include "models/planning/plan.h"
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

// With the vocabulary of the run's tokenizer.
int64_t parameters_of(const TrainConfig& config, int64_t vocab) {
  ModelConfig model = config.model;
  model.vocab = vocab;
  const DryRun without_memory(Device::cpu);
  return Model(model).parameter_count();
}
int64_t parameters_of(const fs::path& file, int64_t vocab) { return parameters_of(config_of(file), vocab); }

// The files of ricci compare: all others are run files.
bool is_comparison(const fs::path& file) {
  const std::string stem = file.stem().string();
  for (const char* start : {"mixers_", "hybrids_", "muon_", "coarse_", "table", "modern_block"})
    if (stem.starts_with(start)) return true;
  return false;
}

std::vector<fs::path> files_in_configs() {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kConfigs))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().lexically_relative(kConfigs));
  return files;
}

}  // namespace

TEST_CASE("configs: each can be read and built, and a run is named after its file") {
  int runs = 0;
  std::vector<std::string> bases;
  for (const fs::path& file : files_in_configs()) {
    if (is_comparison(file)) continue;
    CAPTURE(file.string());
    const TrainConfig config = config_of(file);
    ModelConfig model = config.model;
    if (model.vocab == 0) model.vocab = 100;
    CHECK_NOTHROW(check(model));
    if (!config.given.contains("name")) {
      bases.push_back(file.string());
      continue;
    }
    CHECK(config.name == file.stem().string());
    ++runs;
  }
  CHECK(runs >= 33);
  std::sort(bases.begin(), bases.end());
  CHECK(bases == std::vector<std::string>{"dispatcher/base.yaml", "dispatcher/openwebtext.yaml", "metaformer/base.yaml",
                     "metaformer/sentiment.yaml", "metaformer/sentiment5.yaml", "multiscale/base.yaml", "multiscale/small.yaml"});
}

TEST_CASE("configs: each is short, because it holds only its difference from its base") {
  for (const fs::path& file : files_in_configs()) {
    CAPTURE(file.string());
    const std::string text = test_data::read_file((kConfigs / file).string());
    CHECK(std::count(text.begin(), text.end(), '\n') <= (file == "multiscale/base.yaml" ? 17 : 12));
  }
}

// Takes minutes under a sanitizer; models/planning tests plans of every kind.
TEST_CASE("configs: every model of a comparison can be planned, and has the layers of its name, which lists them from coarse to fine" *
          doctest::skip(test::kSanitized)) {
  int models = 0;
  for (const fs::path& file : files_in_configs()) {
    if (!is_comparison(file)) continue;
    CAPTURE(file.string());
    for (const Contestant& one : read_contestants((kConfigs / file).string())) {
      CAPTURE(one.name);
      TrainConfig config = load_run_file(one.file, one.overrides);
      if (config.model.vocab == 0 && config.given.contains("tokenizer")) config.model.vocab = 100;
      REQUIRE(config.model.vocab > 0);
      CHECK_NOTHROW(check(config.model));
      if (++models % 16 == 0 || test::everything())  // a plan takes a while
        CHECK(plan_step(
                  config.model, config.optimizer, {1, config.sequence_length(), 1, storage_dtype(config.precision), false, Device::cpu, {}})
                  .parameters > 0);
      std::vector<int64_t> layers = config.model.stack_layers.layers;
      std::reverse(layers.begin(), layers.end());
      std::string numbers;
      for (const int64_t n : layers) numbers += "_" + std::to_string(n);
      if (one.name.starts_with("top-down_") || one.name.starts_with("bottom-up_")) CHECK(one.name.find(numbers) != std::string::npos);
      if (one.name.starts_with("vanilla_")) CHECK(one.name == "vanilla_" + std::to_string(config.model.layers));
    }
  }
  CHECK(models >= 83);
}

TEST_CASE("configs: the models of the multi-scale paper have as many parameters as its table 8 has layers") {
  const auto layers = [](int64_t n, int64_t d) { return n * (12 * d * d + 13 * d); };
  constexpr int64_t d = 768, vocab = 31300, ends = vocab * d + 2 * d + 512 * d;
  CHECK(parameters_of("multiscale/bookcorpus_vanilla.yaml", vocab) == layers(12, d) + ends);
  CHECK(parameters_of("multiscale/bookcorpus_retina.yaml", vocab) == layers(12, d) + ends);
  CHECK(parameters_of("multiscale/wikitext103_vanilla.yaml", 33346) == layers(16, d) + 33346 * d + 2 * d + 512 * d);
  // Three more position tables and closing norms, three upsamplings by 4 and three maps from 2 d.
  CHECK(parameters_of("multiscale/bookcorpus_topdown.yaml", vocab) ==
        layers(30, d) + ends + 3 * 2 * d + (128 + 32 + 8) * d + 3 * (4 * d * d + d) + 3 * (2 * d * d + d));
}

TEST_CASE("configs: the models of the Dispatcher paper have the published numbers of parameters") {
  // 39M and 36M with all tokens of bert-base-cased, 41M and 38M with all tokens of bert-base-uncased.
  CHECK(parameters_of("dispatcher/wikitext103_msa.yaml", 28'996) == 39'188'804);
  CHECK(parameters_of("dispatcher/wikitext103_dispatcher.yaml", 28'996) == 36'058'436);
  CHECK(parameters_of("dispatcher/1bw_msa.yaml", 30'522) == 40'752'954);
  CHECK(parameters_of("dispatcher/1bw_dispatcher.yaml", 30'522) == 37'622'586);
  // 59M with GPT-2's tokens.
  CHECK(parameters_of("dispatcher/openwebtext_dispatcher.yaml", 50'257) == 59'448'337);
  // 18M with the tokens of bert-base-cased that PTB needs.
  CHECK(parameters_of("dispatcher/ptb_msa.yaml", 8'560) == 18'241'904);
}

TEST_CASE("configs: both models of a small pair have the same size") {
  for (const char* file : {"dispatcher/mixers_ptb.yaml", "dispatcher/mixers_wikitext2.yaml"}) {
    CAPTURE(file);
    const std::vector<Contestant> pair = read_contestants((kConfigs / file).string());
    REQUIRE(pair.size() == 2);
    const int64_t msa = parameters_of(load_run_file(pair[0].file, pair[0].overrides), 1000),
                  dispatcher = parameters_of(load_run_file(pair[1].file, pair[1].overrides), 1000);
    CHECK(std::abs(msa - dispatcher) < msa / 1000);
  }
}
