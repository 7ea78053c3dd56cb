// A plan holds what a step then takes.
#include "models/planning/plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/cpu/parallel.h"
#include "core/error.h"
#include "core/memory/arena.h"
#include "core/memory/dry_run.h"
#include "core/memory/memory.h"
#include "cuda/device/device.h"
#include "models/model.h"
#include "models/training/train_step.h"
#include "ops/products/products.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

ModelConfig small_model() {
  ModelConfig config;
  config.vocab = 301, config.ctx = 48, config.d = 64, config.layers = 3, config.settings<Sdp>().heads = 4;
  apply_preset(config);
  resolve(config);
  return config;
}

// The peak of two real steps.
int64_t measured_peak(const ModelConfig& config, const OptimizerConfig& optimizer_config, const StepShape& shape) {
  const int64_t before = memory_use(shape.device).current;
  reset_peak(shape.device);
  Model model(config);
  model.init(1);
  model.place_for_training(shape.dtype, shape.device);
  model.recompute_blocks(shape.recompute_blocks);
  if (shape.freeze) shape.freeze(model);
  Optimizer optimizer(model.trained_parameters(), optimizer_config);
  TrainStep train(model, optimizer, shape.device, {.seed = 1, .clip = 1});
  const Tensor ids_bc = zeros({shape.sequences, shape.context}, Dtype::i64, shape.device);
  const std::vector<MicroBatch> micro_batches(static_cast<size_t>(shape.micro_batches), {{ids_bc, ids_bc}, ids_bc.size()});
  for (int64_t step = 0; step < 2; ++step) train.run(micro_batches, step, 1e-3);
  return memory_use(shape.device).peak - before;
}

}  // namespace

TEST_CASE("plan: the peak is that of the step") {
  OptimizerConfig sgd;
  sgd.kind = OptimizerConfig::Kind::sgd;
  for (const Device device : {Device::cpu, Device::cuda_emulated})
    for (const auto& [optimizer, shape] : {std::pair{OptimizerConfig(), StepShape{2, 32, 1, Dtype::f32, false, device}},
             {OptimizerConfig(), StepShape{2, 32, 1, Dtype::f32, true, device}},
             {OptimizerConfig(), StepShape{1, 48, 2, Dtype::bf16, false, device}}, {sgd, StepShape{3, 7, 1, Dtype::f32, false, device}}}) {
      const auto planned = static_cast<double>(plan_step(small_model(), optimizer, shape).peak);
      CHECK(planned == doctest::Approx(static_cast<double>(measured_peak(small_model(), optimizer, shape))).epsilon(0.003));
    }
}

TEST_CASE("plan: a rank holds the values whole, and its blocks of the optimizer's state") {
  const auto at = [](const Plan& plan, HeldFor use) { return plan.at_peak[static_cast<size_t>(use)]; };
  for (const Device device : {Device::cpu, Device::cuda_emulated})
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
      StepShape shape{2, 32, 8, dtype, false, device};
      shape.max_ranks = 8;
      const Plan alone = plan_step(small_model(), {}, shape);
      for (const int64_t ranks : {2, 3, 8}) {
        CAPTURE(ranks);
        shape.ranks = ranks;
        const Plan one = plan_step(small_model(), {}, shape);
        CHECK(one.parameters == alone.parameters);
        CHECK(at(one, HeldFor::parameters) == at(alone, HeldFor::parameters));
        // Whole blocks of 16,384, of which small parameters fill less; the last bucket is padded to a multiple of the ranks.
        const int64_t state = at(alone, HeldFor::optimizer_state), block = GradientLayout::kBlock * 12;
        CHECK(at(one, HeldFor::optimizer_state) <= state / ranks + state / 4 + block);
        CHECK(one.peak < alone.peak);
        CHECK(one.flops() < 1.6 * alone.flops() / static_cast<double>(ranks));
        CHECK(one.flops() >= alone.flops() * static_cast<double>(8 / ranks) / 8);  // of 8 leaves
      }
    }
}

TEST_CASE("plan: the ranks of a plan") {
  StepShape shape{2, 32, 4, Dtype::f32, false, Device::cpu};
  shape.max_ranks = 4, shape.ranks = 2;
  CHECK(message_of([&] { measure_step(small_model(), {}, shape); }) == "measured memory: 2 ranks, this is one process");
  shape.ranks = 5;
  CHECK(message_of([&] { plan_step(small_model(), {}, shape); }) == "max_ranks: 4 is the most ranks this run can use, not 5");
  shape.ranks = 2, shape.cuda_graph = true;
  CHECK(message_of([&] { plan_step(small_model(), {}, shape); }) == "cuda_graph: not with several ranks yet");
}

TEST_CASE("plan: the block of a recorded step") {
  for (const int64_t micro_batches : {1, 2}) {
    StepShape shape{2, 16, micro_batches, Dtype::f32, false, Device::cuda_emulated};
    const Plan plain = plan_step(small_model(), {}, shape);
    shape.cuda_graph = true;
    const Plan recorded = plan_step(small_model(), {}, shape);
    Model model(small_model(), 1);
    model.place_for_training(shape.dtype, shape.device);
    Optimizer optimizer(model.trained_parameters(), {});
    TrainStep train(model, optimizer, shape.device, {.seed = 1, .clip = 1, .cuda_graph = true});
    const Tensor ids_bc = zeros({shape.sequences, shape.context}, Dtype::i64, shape.device);
    for (int64_t step = 0; step < 2; ++step)
      train.run(std::vector<MicroBatch>(static_cast<size_t>(micro_batches), {{ids_bc, ids_bc}, ids_bc.size()}), step, 1e-3);
    CHECK(plain.recorded == 0);
    CHECK(recorded.peak == plain.peak);
    CHECK(recorded.process == recorded.peak + recorded.recorded);
    CHECK(static_cast<double>(recorded.recorded) == doctest::Approx(static_cast<double>(train.graph_bytes())).epsilon(0.003));
  }
}

TEST_CASE("plan: the buffers of the threads are a part of what the process holds, and no tensors") {
  const int before = thread_count();
  const auto planned = [](int threads) {
    set_thread_count(threads);
    return plan_step(small_model(), {}, {8, 48, 1, Dtype::f32, false, Device::cpu});
  };
  const Plan one = planned(1), four = planned(4);
  set_thread_count(before);
  CHECK(four.process > one.process + (64 << 10));
  CHECK(four.peak < one.peak + (one.peak >> 6));
}

TEST_CASE("plan: activations and buffers grow with the batch alone, and are a part of the peak") {
  for (const Device device : {Device::cpu, Device::cuda_emulated}) {
    const auto planned = [&](int64_t sequences) { return plan_step(small_model(), {}, {sequences, 32, 1, Dtype::f32, false, device, {}}); };
    const Plan one = planned(8), two = planned(16);
    CHECK(one.working < one.peak);
    CHECK(one.working >= one.at_peak[static_cast<size_t>(HeldFor::activations)] + one.at_peak[static_cast<size_t>(HeldFor::other)]);
    CHECK(two.working - one.working == two.peak - one.peak);
    CHECK(static_cast<double>(two.working) > 1.5 * static_cast<double>(one.working));
  }
}

TEST_CASE("plan: what it is held for, what the tape keeps, how much work") {
  const StepShape shape{2, 32, 1, Dtype::f32, false, Device::cpu};
  const Plan plan = plan_step(small_model(), {}, shape);
  Model model(small_model());
  CHECK(plan.parameters == model.parameter_count());
  const auto at = [&](HeldFor use) { return plan.at_peak[static_cast<size_t>(use)]; };
  CHECK(at(HeldFor::parameters) == 4 * plan.parameters);
  CHECK(at(HeldFor::optimizer_state) >= 8 * plan.parameters);
  int64_t sum = 0, kept = 0;
  for (const int64_t bytes : plan.at_peak) sum += bytes;
  CHECK(sum == plan.peak);
  for (const Plan::Kept& row : plan.kept) kept += row.bytes;
  CHECK(kept > 0);
  // 6 per weight of a product and token, and attention's scores: fewer than 10% more.
  const double products = 6.0 * static_cast<double>(3 * 12 * 64 * 64 + 301 * 64) * 64;
  CHECK(plan.flops() > products);
  CHECK(plan.flops() < 1.1 * products);
  StepShape again = shape;
  again.recompute_blocks = true;
  CHECK(plan_step(small_model(), {}, again).peak < plan.peak);
  CHECK(plan_step(small_model(), {}, again).flops() > 1.2 * plan.flops());
}

TEST_CASE("plan: frozen parameters have no gradients and no optimizer state") {
  StepShape shape{2, 32, 1, Dtype::f32, false, Device::cpu};
  const Plan all = plan_step(small_model(), {}, shape);
  shape.freeze = [](Model& model) {
    model.each_parameter([](const std::string& path, Parameter& p) { p.frozen = !path.starts_with("blocks.2."); });
  };
  const Plan some = plan_step(small_model(), {}, shape);
  CHECK(some.parameters == 12 * 64 * 64 + 13 * 64);
  const auto at = [](const Plan& plan, HeldFor use) { return plan.at_peak[static_cast<size_t>(use)]; };
  CHECK(at(some, HeldFor::parameters) == at(all, HeldFor::parameters));
  CHECK(at(some, HeldFor::optimizer_state) < at(all, HeldFor::optimizer_state) / 2);
  CHECK(static_cast<double>(some.peak) == doctest::Approx(static_cast<double>(measured_peak(small_model(), {}, shape))).epsilon(0.003));
}

TEST_CASE("plan: a frozen head has no gradient, and frozen blocks below the trained ones keep nothing") {
  ModelConfig config = small_model();
  config.vocab = 3001, config.output.tie = false;
  const auto planned = [&](bool head, bool recompute) {
    StepShape shape{2, 32, 1, Dtype::f32, recompute, Device::cpu};
    shape.freeze = [head](Model& model) {
      model.each_parameter([head](const std::string& path, Parameter& p) {
        p.frozen = !path.starts_with("blocks.2.") && !(head && path.starts_with("head"));
      });
    };
    const Plan plan = plan_step(config, {}, shape);
    CHECK(static_cast<double>(plan.peak) == doctest::Approx(static_cast<double>(measured_peak(config, {}, shape))).epsilon(0.003));
    return plan;
  };
  const auto kept_bytes = [](const Plan& plan) {
    int64_t bytes = 0;
    for (const Plan::Kept& kept : plan.kept) bytes += kept.bytes;
    return bytes;
  };
  const Plan with_head = planned(true, false), without = planned(false, false), again = planned(false, true);
  constexpr int64_t kHead = 3001 * 64, kRows = 64;
  CHECK(with_head.peak - without.peak >= 4 * 3 * kHead);              // its gradient and its moments
  CHECK(with_head.flops() - without.flops() == 2.0 * kHead * kRows);  // the product that its gradient is
  const int64_t residual = 4 * kRows * 64;
  CHECK(kept_bytes(again) < kept_bytes(without) - 4 * residual);
  int64_t recomputed = 0;
  for (const Plan::Kept& kept : again.kept) recomputed += kept.op == "recompute" ? kept.count : 0;
  CHECK(recomputed == 1);
}

TEST_CASE("plan: the largest batch that fits, into what the process holds") {
  for (const Device device : {Device::cpu, Device::cuda_emulated}) {
    const StepShape shape{1, 32, 1, Dtype::f32, false, device};
    const auto process_of = [&](int64_t sequences) {
      return plan_step(small_model(), {}, {sequences, 32, 1, Dtype::f32, false, device}).process;
    };
    // The arena takes memory from the system in slabs: where a sequence more needs no slab more, it fits too.
    int64_t sequences = 5;
    while (process_of(sequences + 1) == process_of(sequences)) ++sequences;
    CHECK(most_sequences(small_model(), {}, shape, process_of(sequences)) == sequences);
    CHECK(most_sequences(small_model(), {}, shape, process_of(sequences) - 1) < sequences);
    CHECK(most_sequences(small_model(), {}, shape, 1000) == 0);
  }
}

TEST_CASE("plan: a model far larger than the machine") {
  ModelConfig config = small_model();
  config.d = 32768, config.layers = 25, config.ctx = 4096, config.block.ff = 4 * config.d;
  const Plan plan = plan_step(config, {}, {64, 4096, 1, Dtype::bf16});
  CHECK(plan.peak > int64_t{4} << 40);
}

TEST_CASE("arena counter: small blocks are cut from slabs of 32 MiB, of which whole huge pages are touched; freed ones are used again") {
  constexpr int64_t kPage = 2 << 20, kBlock = 4 << 20;
  ArenaCounter arena;
  const int64_t small = arena.allocate(100);
  CHECK(arena.touched() == kPage);
  for (int i = 0; i < 7; ++i) arena.allocate(kBlock);
  CHECK(arena.touched() == 15 * kPage);
  arena.allocate(kBlock);  // the rest of the slab is smaller
  CHECK(arena.touched() == 17 * kPage);
  arena.release(100, small);
  arena.allocate(110);
  CHECK(arena.touched() == 17 * kPage);
  arena.allocate(2 * kBlock + 1);  // a mapping of its own
  CHECK(arena.touched() == 22 * kPage);
}

TEST_CASE("dry run: the buffers of a matrix product count, and are no tensors") {
  const DryRun dry(Device::cpu);
  const int64_t before = memory_use(Device::cpu).current;
  const Tensor x = zeros({512, 512}, Dtype::f64, Device::cpu), w = zeros({512, 512}, Dtype::f64, Device::cpu), y = linear(x, w, Tensor());
  CHECK(memory_use(Device::cpu).current - before == 3 * x.bytes());
  CHECK(dry.arena_bytes() >= 3 * x.bytes() + (1 << 20));
}

TEST_CASE("dry run: tensors of before and after are what they are") {
  const Tensor before = zeros({1000}, Dtype::f32, Device::cpu);
  before.data<float>()[7] = 3;
  Tensor outlives, replaced = zeros({1000}, Dtype::f32, Device::cpu);
  {
    const DryRun dry(Device::cpu);
    outlives = zeros({int64_t{1} << 40}, Dtype::f32, Device::cpu);
    replaced = {};
    CHECK(message_of([] { const DryRun second(Device::cpu); }) == "dry run: one is alive");
  }
  CHECK(item(outlives, int64_t{1} << 39) == 0);
  outlives = {};
  CHECK(item(before, 7) == 3);
  CHECK(message_of([] { const DryRun dry(Device::cuda); }) ==
        "dry run: expected cpu or cuda_emulated, whose kernels ask for the same memory as on cuda, got cuda");
}

TEST_CASE("plan: the tape is that of a forward in training") {
  const ModelConfig config = small_model();
  Model model(config);
  model.init(1);
  model.place_for_training(Dtype::f32, Device::cpu);
  const Tensor ids_bc = zeros({2, 16}, Dtype::i64, Device::cpu);
  char* text = nullptr;
  size_t bytes = 0;
  std::FILE* const file = open_memstream(&text, &bytes);
  REQUIRE(file);
  {
    const Training on;
    const Tape tape;
    const Tensor loss = model.loss({ids_bc, ids_bc});
    tape.print(file);
  }
  std::fclose(file);
  const std::string expected(text, bytes);
  std::free(text);
  CHECK(std::count(expected.begin(), expected.end(), '\n') > 20);
  CHECK(tape_of_step(config, {.sequences = 2, .context = 16, .micro_batches = 3}) == expected);
  CHECK(tape_of_step(config, {.sequences = 2, .context = 16, .recompute_blocks = true}) != expected);
}
