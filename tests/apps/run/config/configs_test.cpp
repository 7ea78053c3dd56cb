// The run files of apps/configs: each can be read and built, and the models of papers have the papers' sizes.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "apps/lab/comparison/matching.h"
#include "apps/run/config/config.h"
#include "apps/run/config/train_config.h"
#include "core/memory/dry_run.h"
#include "models/model.h"
#include "models/planning/plan.h"
#include "tests/data/files.h"
#include "tests/sanitized.h"

using namespace ricci;
using namespace ricci::apps;
namespace fs = std::filesystem;

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
      const Plan plan =
          plan_step(config.model, config.optimizer, {1, *config.context, 1, storage_dtype(config.precision), false, Device::cpu, {}});
      CHECK(plan.parameters > 0);
      ++models;
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
