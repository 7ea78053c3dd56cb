// After the first steps a training step takes every tensor from what earlier ones gave back.
#include <doctest/doctest.h>

#include "autograd/random.h"
#include "autograd/tape.h"
#include "core/memory.h"
#include "cuda/device.h"
#include "cuda/parallel.h"
#include "models/model.h"
#include "models/optim/optimizer.h"
#include "models/training.h"

using namespace ricci;

namespace {

ModelConfig small(const char* preset) {
  ModelConfig config;
  config.preset = preset, config.vocab = 31, config.ctx = 16, config.d = 24, config.heads = 3, config.layers = {2}, config.dropout = 0.1;
  apply_preset(config);
  resolve(config);
  return config;
}

Tensor ids_of(int64_t step, int64_t vocabulary) {
  const Tensor ids_bc({4, 16}, Dtype::i64);
  for (int64_t i = 0; i < ids_bc.size(); ++i) ids_bc.data<int64_t>()[i] = (i * 7 + step * 5) % vocabulary;
  return ids_bc;
}

// Requests to the system and bytes held after each of `steps` steps.
std::vector<MemoryUse> train(const char* preset, Dtype dtype, int steps) {
  Model model(small(preset));
  model.init(1);
  model.place_for_training(dtype, Device::cpu);
  Optimizer optimizer(model.parameters(), {});
  std::vector<MemoryUse> after;
  for (int step = 0; step < steps; ++step) {
    set_random_state({1, 0});
    {
      const Training training;
      Tape tape;
      tape.backward(model.loss(ids_of(step, 31), ids_of(step + 1, 31)));
    }
    optimizer.step(1e-3, 1 / (1 + optimizer.gradient_norm()));
    after.push_back(memory_use(Device::cpu));
  }
  return after;
}

}  // namespace

TEST_CASE("steps 3 to 20 ask the system for no memory, and hold no more than the second") {
  const int threads = thread_count();
  set_thread_count(1);  // how many threads work at the same time, each in memory of its own, is not the same in every step
  for (const char* preset : {"gpt", "msa"})
    for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
      const std::vector<MemoryUse> after = train(preset, dtype, 20);
      CAPTURE(preset);
      CHECK(after[0].allocations > 0);
      for (size_t step = 2; step < 20; ++step) {
        CHECK(after[step].allocations == after[1].allocations);
        CHECK(after[step].current == after[1].current);
        CHECK(after[step].peak == after[1].peak);
      }
    }
  set_thread_count(threads);
}
