// Steps of a small model on the processes that mpirun started, or on one: ricci-several-steps DEVICE DTYPE. Prints losses, norms and a hash
// of the values for ranks.sh. Error: the ranks differ.
#define DOCTEST_CONFIG_IMPLEMENT  // the shared headers of tests include doctest
#include <doctest/doctest.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "apps/terminal/cli.h"
#include "core/error.h"
#include "core/files/checksum.h"
#include "cuda/device/device.h"
#include "cuda/ranks/ranks.h"
#include "models/training/train_step.h"
#include "tests/models/training/every_model.h"
#include "tests/models/training/small_training.h"

using namespace ricci;

namespace {

constexpr int64_t kMicroBatches = 8, kSteps = 5;

std::string hash_of(Model& model) {
  std::string bytes;
  for (const Parameter* const p : model.parameters()) {
    const Tensor value = to(p->value.detached(), Device::cpu);
    bytes.append(static_cast<const char*>(value.raw()), static_cast<size_t>(value.bytes()));
  }
  return format_message("{:016x}", {xxh64(bytes)});
}

int take_steps(Device device, Dtype dtype) {
  Ranks& ranks = Ranks::join();
  ModelConfig config = small_model({.dropout = 0.1});
  config.vocab = 1500;
  Model model(config, 3);
  model.place_for_training(dtype, device);
  Optimizer optimizer(model.trained_parameters(), {});
  const auto [lo, hi] = share_of(kMicroBatches, ranks);
  TrainStep step(model, optimizer, device, {.seed = 8, .clip = 0.05, .first_micro_batch = lo}, ranks);
  const std::vector<Batch> all = small_micro_batches(config, kMicroBatches, device);
  std::string outcome;
  for (int64_t i = 0; i < kSteps; ++i) {
    ranks.at(format_message("step {}", {i + 1}));
    const StepResult result = step.run({all.begin() + lo, all.begin() + hi}, i, 1e-2);
    outcome += format_message("loss {:.17g}, norm {:.17g}\n", {result.loss, result.gradient_norm});
  }
  outcome += "values " + hash_of(model) + "\n";
  for (const std::string& other : ranks.from_all(outcome))
    if (other != outcome) fail("the ranks differ: {} and {}", {outcome, other});
  if (ranks.rank() == 0) std::fputs(outcome.c_str(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string device, dtype;
  return apps::run_app(
      argc, argv, {"ricci-several-steps", "Steps of a small model.", true, true},
      [&](CLI::App& app) {
        app.add_option("device", device, "cpu or cuda_emulated")->required();
        app.add_option("dtype", dtype, "f32 or bf16")->required();
      },
      [&] { return take_steps(parse_device(device.c_str()), parse_dtype(dtype.c_str())); });
}
