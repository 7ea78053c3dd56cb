// After the first steps a training step takes every tensor from what earlier ones gave back.
#include <doctest/doctest.h>

#include "core/cpu/parallel.h"
#include "core/memory/memory.h"
#include "models/training/train_step.h"
#include "tests/models/training/small_training.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Kind {
  Preset preset;
  Dtype dtype;
  int64_t accumulation;
};

// Requests to the system and bytes held after each of `steps` steps as ricci-train takes them.
std::vector<MemoryUse> train(const Kind& kind, int64_t steps) {
  TrainConfig config;
  config.batch = 4, config.accumulation = kind.accumulation;
  const SmallModel of{.preset = kind.preset, .context = 16, .d = 24, .dropout = 0.1};
  Model model(small_model(of));
  model.init(1);
  model.place_for_training(kind.dtype, Device::cpu);
  Optimizer optimizer(model.parameters(), config.optimizer);
  TrainStep train_step(model, optimizer, Device::cpu, step_options(config));
  const RandomCrops crops(small_text(), config.batch, of.context, config.seed);
  std::vector<MemoryUse> after;
  for (int64_t step = 0; step < steps; ++step) {
    train_step.run(micro_batches_of(crops, config, step, Device::cpu), step, 1e-3);
    after.push_back(memory_use(Device::cpu));
  }
  return after;
}

}  // namespace

TEST_CASE("steps 3 to 20 ask the system for no memory, and hold no more than the second") {
  const int threads = thread_count();
  set_thread_count(1);  // how many threads work at the same time, each in memory of its own, is not the same in every step
  for (Preset preset : {Preset::gpt, Preset::msa})
    for (Dtype dtype : {Dtype::f32, Dtype::bf16})
      for (int64_t accumulation : {1, 2}) {
        const std::vector<MemoryUse> after = train({preset, dtype, accumulation}, 20);
        CAPTURE(std::string(name_of(preset)));
        CAPTURE(accumulation);
        CHECK(after[0].allocations > 0);
        for (size_t step = 2; step < 20; ++step) {
          CHECK(after[step].allocations == after[1].allocations);
          CHECK(after[step].current == after[1].current);
          CHECK(after[step].peak == after[1].peak);
        }
      }
  set_thread_count(threads);
}
