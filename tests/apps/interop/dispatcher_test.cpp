// Small models with the names of the Dispatcher paper's repository (tests/interop/dispatcher.py) become run folders with the logits that
// their definition has.
#include <doctest/doctest.h>

#include <functional>

#include "apps/interop/interop.h"
#include "apps/run/folder/run_folder.h"
#include "cuda/device/device.h"
#include "tests/apps/interop/stored_folders.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

const std::string kAttention = kModels + "attention/theirs.safetensors";

// The error of importing the stored attention model after a change.
std::string refused(const std::function<void(std::vector<std::pair<std::string, Tensor>>&)>& change,
    const DispatcherImport& options = {.heads = 2, .context = 16}) {
  const ScratchFolder folder;
  const SafetensorsFile file(kAttention);
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const std::string& name : file.names()) tensors.emplace_back(name, file.load(name));
  change(tensors);
  save_safetensors(folder / "a.safetensors", tensors, {});
  const std::string error = error_of([&] { import_dispatcher(folder / "a.safetensors", folder / "run", options); });
  CHECK(!std::filesystem::exists(folder / "run"));
  return error.substr(error.find("a.safetensors"));
}

void remove_ending_in(std::vector<std::pair<std::string, Tensor>>& tensors, const std::string& end) {
  std::erase_if(tensors, [&](const auto& t) { return t.first.ends_with(end); });
}

}  // namespace

TEST_CASE("Dispatcher repository: the stored attention model has the stored logits") {
  const ScratchFolder folder;
  const std::string line = import_dispatcher(kAttention, folder / "run", {.heads = 2, .context = 16});
  CHECK(contains(line, ", no tokenizer, vocabulary 11, context 16"));
  const RunFolder run = RunFolder::open(folder / "run", RunFolder::Vocabulary::optional);
  CHECK(run.config().model.layers == 2);
  CHECK(run.config().model.block.ff == 12);
  CHECK(run.config().model.block.dropout == 0.2);
  CHECK(largest_error(run.load_model(Device::cpu), "attention") < 1e-5);
}

TEST_CASE("Dispatcher repository: the stored dispatcher has the stored logits") {
  const std::string stored = kModels + "dispatcher/theirs.safetensors";
  const ScratchFolder folder;
  import_dispatcher(stored, folder / "run", {});
  const RunFolder run = RunFolder::open(folder / "run", RunFolder::Vocabulary::optional);
  CHECK(run.config().model.ctx == 16);
  CHECK(largest_error(run.load_model(Device::cpu), "dispatcher") < 1e-5);
  CHECK(contains(error_of([&] { import_dispatcher(stored, folder / "other", {.heads = 2}); }),
      "a dispatcher of 2 heads; with more than one the models of that repository mix heads and positions up"));
}

TEST_CASE("Dispatcher repository: what cannot be imported is named") {
  const auto as_is = [](auto&) {};
  CHECK(refused(as_is, {.heads = 2}) == "a.safetensors: attention does not record its context; choose it with --context");
  CHECK(refused(as_is, {.heads = 3, .context = 16}) == "a.safetensors: model.heads: 3 does not divide d = 8");
  CHECK(refused([](auto& t) { remove_ending_in(t, "in_proj_weight"); }) ==
        "a.safetensors: has neither transformer_encoder.layers.0.self_attn.in_proj_weight nor "
        "transformer_encoder.layers.0.self_attn.internal_attention.weight; it is no model of the Dispatcher repository");
  CHECK(refused([](auto& t) { remove_ending_in(t, "linear1.weight"); }) ==
        "a.safetensors: tensor transformer_encoder.layers.0.linear1.weight is missing");
  CHECK(refused([](auto& t) { remove_ending_in(t, "layers.1.norm2.bias"); }) ==
        "a.safetensors: tensor transformer_encoder.layers.1.norm2.bias [8] is missing");
  CHECK(refused([](auto& t) { t.emplace_back("decoder.scale", Tensor({3})); }) ==
        "a.safetensors: tensor decoder.scale [3] has no place in this Dispatcher repository model");
  CHECK(refused([](auto& t) {
    remove_ending_in(t, "encoder.weight");
    t.emplace_back("encoder.weight", Tensor({8}));
  }) == "a.safetensors: tensor encoder.weight is [8], expected a matrix");
}
