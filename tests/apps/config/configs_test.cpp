// The run files of apps/configs: each can be read and built, and those of papers have the papers' sizes.
#include <doctest/doctest.h>

#include <filesystem>

#include "apps/config/config.h"
#include "apps/config/train_config.h"
#include "models/model.h"

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
  return Model(model).parameter_count();
}

}  // namespace

TEST_CASE("configs: each can be read and built, and a run is named after its file") {
  int files = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kConfigs)) {
    if (entry.path().extension() != ".yaml") continue;
    const fs::path file = entry.path().lexically_relative(kConfigs);
    CAPTURE(file.string());
    ModelConfig model = config_of(file).model;
    if (model.vocab == 0) model.vocab = 100;
    CHECK_NOTHROW(check(model));
    const std::string room = file.parent_path().string();
    CHECK(config_of(file).name == (room.empty() ? "" : room + "_") + file.stem().string());
    ++files;
  }
  CHECK(files >= 36);
}

TEST_CASE("configs: the models of the Dispatcher paper have the published numbers of parameters") {
  // 39M and 36M with all pieces of bert-base-cased, 41M and 38M with those of bert-base-uncased.
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
