// A plan equals the memory of the step, also by purpose.
#include "models/planning/plan.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <tuple>

#include "core/cpu/parallel.h"
#include "core/memory/dry_run.h"
#include "core/memory/memory.h"
#include "models/training/train_step.h"
#include "ops/products/products.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

// Smaller on the slow emulator.
ModelConfig small_model(Device device = Device::cpu, Family family = family_of<Decoder>, Preset preset = Preset::gpt) {
  const bool slow = device == Device::cuda_emulated;
  ModelConfig config;
  config.family = family, config.preset = preset, config.vocab = 301, config.ctx = 48, config.d = slow ? 32 : 64;
  config.layers = slow ? 1 : 3;
  config.scales.scales = slow ? std::vector<int64_t>{1, 4} : std::vector<int64_t>{1, 4, 16}, config.stack_layers.layers = {1};
  apply_preset(config);
  return config;
}

int64_t at(const StepMemory& memory, HeldFor use) { return memory.at_peak[static_cast<size_t>(use)]; }

doctest::Approx near(int64_t bytes) { return doctest::Approx(static_cast<double>(bytes)).epsilon(0.003); }

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
  const std::vector<Batch> micro_batches(static_cast<size_t>(shape.micro_batches), make_batch(ids_bc, ids_bc));
  for (int64_t step = 0; step < 2; ++step) train.run(micro_batches, step, 1e-3);
  return memory_use(shape.device).peak - before;
}

ModelConfig small_llama(Device device) {
  ModelConfig config = small_model(device, family_of<Decoder>, Preset::llama);
  SdpConfig& attention = config.settings<Sdp>();
  attention.kv_heads = 2, attention.head_width = 24, attention.qk_norm = true;
  return config;
}

ModelConfig small_hybrid(Device device) {
  ModelConfig config = small_model(device);
  config.mixer = {kind_of<Dispatcher>, kind_of<Sdp>};
  return config;
}

}  // namespace

TEST_CASE("plan: it equals the measured step, whatever is trained") {
  const auto freeze = [](Model& model) {
    model.each_parameter([](const std::string& path, Parameter& p) { p.frozen = path.starts_with("blocks.0.mixer"); });
  };
  const OptimizerConfig adamw, sgd = OptimizerConfig::with(Sgd()), muon = OptimizerConfig::with(Muon());
  for (const Device device : {Device::cpu, Device::cuda_emulated})
    for (const auto& [config, optimizer, shape] :
        std::vector<std::tuple<ModelConfig, OptimizerConfig, StepShape>>{{small_model(device), adamw, {2, 32, 1, Dtype::f32, true, device}},
            {small_model(device), sgd, {3, 7, 1, Dtype::f32, false, device}},
            {small_llama(device), adamw, {1, 24, 2, Dtype::bf16, false, device}},
            {small_llama(device), muon, {1, 24, 2, Dtype::bf16, false, device}},
            {small_model(device), muon, {2, 32, 1, Dtype::f32, true, device}},
            {small_hybrid(device), adamw, {2, 32, 1, Dtype::f32, false, device}},
            {small_model(device), adamw, {.sequences = 2, .context = 16, .device = device, .freeze = freeze}},
            {small_model(device, family_of<TopDown>), adamw, {2, 32, 1, Dtype::f32, false, device}}}) {
      const Plan planned = plan_step(config, optimizer, shape);
      CHECK(static_cast<double>(measured_peak(config, optimizer, shape)) == near(planned.peak));
      CHECK(std::accumulate(planned.at_peak.begin(), planned.at_peak.end(), int64_t{0}) == planned.peak);
      CHECK(planned.working < planned.peak);
      CHECK(planned.working >= at(planned, HeldFor::activations) + at(planned, HeldFor::other));
    }
}

TEST_CASE("plan: the products of muon have a row") {
  ModelConfig config = small_llama(Device::cpu);
  const StepShape shape{2, 32, 1, Dtype::f32, false, Device::cpu};
  const Plan adamw = plan_step(config, {}, shape), muon = plan_step(config, OptimizerConfig::with(Muon()), shape);
  double expected = 0;  // q and proj, k and v, gate and up, and the map back, in three layers
  for (const auto& [count, m, n] : {std::tuple{2.0, 64.0, 96.0}, {2.0, 48.0, 64.0}, {3.0, 64.0, 192.0}})
    expected += 3 * count * 5 * (4 * m * m * n + 2 * m * m * m);
  CHECK(!adamw.work.contains("muon"));
  CHECK(muon.work.at("muon").flops == expected);
  CHECK(muon.flops() == adamw.flops() + expected);
}

TEST_CASE("plan: the block of Llama, with shared keys") {
  ModelConfig config = small_llama(Device::cpu);
  const int64_t h = 4, g = 2, k = 24, d = 64, f = 192, tokens = 2 * 32;
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const StepShape shape{2, 32, 1, dtype, false, Device::cpu};
    config.settings<Sdp>().kv_heads = g;
    const Plan planned = plan_step(config, {}, shape);
    CHECK(planned.parameters == 3 * (d * (h + 2 * g) * k + h * k * d + 3 * d * f + 2 * d + 2 * k) + 301 * d + d);
    // Three times the forward: its maps, and the products of queries that attend to half of the keys on average.
    const double maps = 2.0 * static_cast<double>(tokens * (3 * (d * (h + 2 * g) * k + h * k * d + 3 * d * f) + 301 * d));
    const double scores = 3 * 2.0 * static_cast<double>(tokens * 33 * h * k);
    CHECK(planned.flops() > 3 * (maps + scores));
    CHECK(planned.flops() < 1.1 * 3 * (maps + scores));
    config.settings<Sdp>().kv_heads = h;  // the scores have the same size
    const Plan unshared = plan_step(config, {}, shape);
    CHECK(unshared.parameters - planned.parameters == 3 * d * 2 * (h - g) * k);
    CHECK(unshared.working > planned.working);
  }
}

TEST_CASE("plan: a rank takes a step of its micro-batches, with all weights and moments, and adds up its gradients") {
  for (const Device device : {Device::cpu, Device::cuda_emulated})
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
      for (const int64_t ranks : {2, 3, 8}) {
        CAPTURE(ranks);
        const ModelConfig config = small_model(device);
        StepShape shape{2, 32, 8, dtype, false, device};
        shape.ranks = ranks;
        const Plan one = plan_step(config, {}, shape);
        const StepShape own{2, 32, (8 + ranks - 1) / ranks, dtype, false, device};  // the most that a rank computes
        const Plan alone = plan_step(config, {}, own);
        CHECK(one.parameters == alone.parameters);
        CHECK(one.flops() == alone.flops());
        for (const HeldFor use : {HeldFor::parameters, HeldFor::optimizer_state}) CHECK(at(one, use) == at(alone, use));
        // Each gradient starts at a multiple of 32 elements.
        CHECK(one.summed >= 4 * one.parameters);
        CHECK(one.summed < 4 * one.parameters + 4 * 32 * 100);
        CHECK(one.peak >= alone.peak);
        CHECK(one.peak <= alone.peak + one.summed);
        shape.reduce_dtype = Dtype::bf16;
        CHECK(2 * plan_step(config, {}, shape).summed == one.summed);
      }
}

TEST_CASE("plan: the ranks of a plan") {
  StepShape shape{2, 32, 4, Dtype::f32, false, Device::cpu};
  CHECK(plan_step(small_model(), {}, shape).summed == 0);
  shape.ranks = 2;
  shape.ranks = 5;
  CHECK(message_of([&] { plan_step(small_model(), {}, shape); }) == "plan: 4 micro-batches cannot be shared by 5 ranks");
  shape.ranks = 2, shape.cuda_graph = true;
  CHECK(message_of([&] { plan_step(small_model(), {}, shape); }) == "cuda_graph: is not supported with multiple ranks");
}

TEST_CASE("plan: the block of a recorded step") {
  ModelConfig config = small_model();
  config.layers = 1;
  for (const int64_t micro_batches : {1, 2}) {
    StepShape shape{2, 16, micro_batches, Dtype::f32, false, Device::cuda_emulated};
    const Plan plain = plan_step(config, {}, shape);
    shape.cuda_graph = true;
    const Plan recorded = plan_step(config, {}, shape);
    Model model(config, 1);
    model.place_for_training(shape.dtype, shape.device);
    Optimizer optimizer(model.trained_parameters(), {});
    TrainStep train(model, optimizer, shape.device, {.seed = 1, .clip = 1, .cuda_graph = true});
    const Tensor ids_bc = zeros({shape.sequences, shape.context}, Dtype::i64, shape.device);
    for (int64_t step = 0; step < 2; ++step)
      train.run(std::vector<Batch>(static_cast<size_t>(micro_batches), make_batch(ids_bc, ids_bc)), step, 1e-3);
    CHECK(plain.recorded == 0);
    CHECK(recorded.peak == plain.peak);
    CHECK(recorded.process == recorded.peak + recorded.recorded);
    CHECK(static_cast<double>(train.graph_bytes()) == near(recorded.recorded));
  }
}

TEST_CASE("plan: buffers of threads count for the process, and not as tensors") {
  const int before = thread_count();
  const auto planned = [](int threads) {
    set_thread_count(threads);
    return plan_step(small_model(), {}, {64, 48, 1, Dtype::f32, false, Device::cpu});
  };
  const Plan one = planned(1), four = planned(4);
  set_thread_count(before);
  CHECK(four.process > one.process + (64 << 10));
  CHECK(four.peak < one.peak + (one.peak >> 6));
}

TEST_CASE("plan: only activations and buffers grow with the batch") {
  for (const Device device : {Device::cpu, Device::cuda_emulated}) {
    const Plan one = plan_step(small_model(), {}, {8, 32, 1, Dtype::f32, false, device}),
               two = plan_step(small_model(), {}, {16, 32, 1, Dtype::f32, false, device});
    CHECK(two.working - one.working == two.peak - one.peak);
    CHECK(static_cast<double>(two.working) > 1.5 * static_cast<double>(one.working));
  }
}

TEST_CASE("plan: memory by purpose, memory kept by the tape, work") {
  const StepShape shape{2, 32, 1, Dtype::f32, false, Device::cpu};
  const Plan plan = plan_step(small_model(), {}, shape);
  Model model(small_model());
  CHECK(plan.parameters == model.parameter_count());
  CHECK(at(plan, HeldFor::parameters) == 4 * plan.parameters);
  CHECK(at(plan, HeldFor::optimizer_state) >= 8 * plan.parameters);
  int64_t kept = 0;
  for (const Plan::Kept& row : plan.kept) kept += row.bytes;
  CHECK(kept > 0);
  // 6 per weight of a product and token, and attention's scores, less than 10% more.
  const double products = 6.0 * static_cast<double>(3 * 12 * 64 * 64 + 301 * 64) * 64;
  CHECK(plan.flops() > products);
  CHECK(plan.flops() < 1.1 * products);
  StepShape again = shape;
  again.recompute_blocks = true;
  CHECK(plan_step(small_model(), {}, again).peak < plan.peak);
  CHECK(plan_step(small_model(), {}, again).flops() > 1.2 * plan.flops());
}

TEST_CASE("plan: frozen parameters have no gradient and no state, and frozen blocks below the trained ones keep nothing") {
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
    CHECK(static_cast<double>(measured_peak(config, {}, shape)) == near(plan.peak));
    return plan;
  };
  const auto kept_bytes = [](const Plan& plan) {
    int64_t bytes = 0;
    for (const Plan::Kept& kept : plan.kept) bytes += kept.bytes;
    return bytes;
  };
  const Plan with_head = planned(true, false), without = planned(false, false), again = planned(false, true);
  const Plan all = plan_step(config, {}, {2, 32, 1, Dtype::f32, false, Device::cpu});
  CHECK(without.parameters == 12 * 64 * 64 + 13 * 64);
  CHECK(at(without, HeldFor::parameters) == at(all, HeldFor::parameters));
  CHECK(at(without, HeldFor::optimizer_state) < at(all, HeldFor::optimizer_state) / 2);
  constexpr int64_t kHead = 3001 * 64, kRows = 64;
  CHECK(with_head.peak - without.peak >= 4 * 3 * kHead);              // its gradient and its moments
  CHECK(with_head.flops() - without.flops() == 2.0 * kHead * kRows);  // the product for its gradient
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
    // The arena takes memory in slabs, so one more sequence fits if it needs no further slab.
    int64_t sequences = 5;
    while (process_of(sequences + 1) == process_of(sequences)) ++sequences;
    CHECK(most_sequences(small_model(), {}, shape, process_of(sequences)) == sequences);
    CHECK(most_sequences(small_model(), {}, shape, process_of(sequences) - 1) < sequences);
    CHECK(most_sequences(small_model(), {}, shape, 1000) == 0);
  }
}

TEST_CASE("plan: without by_use no request looks at the tensors that are held") {
  struct Asked final : MemoryHolder {
    void each_tensor(const Visit&) const override { ++times; }
    mutable int64_t times = 0;
  };
  const StepShape shape{2, 32, 1, Dtype::f32, false, Device::cpu};
  const Asked asked;
  const Plan plan = plan_step(small_model(), {}, shape, false);
  CHECK(fits(small_model(), {}, shape, plan.process));
  CHECK(asked.times == 0);
  const Plan by_use = plan_step(small_model(), {}, shape);
  CHECK(asked.times > 0);
  CHECK(plan.peak == by_use.peak);
  CHECK(plan.process == by_use.process);
  CHECK(plan.flops() == by_use.flops());
}

TEST_CASE("plan: a model far larger than the machine") {
  ModelConfig config = small_model();
  config.d = 131'072, config.layers = 2, config.ctx = 4096, config.block.ff = 4 * config.d;
  const Plan plan = plan_step(config, {}, {64, 4096, 1, Dtype::bf16});
  CHECK(plan.peak > int64_t{4} << 40);
}

TEST_CASE("arena counter: small blocks are cut from slabs of 32 MiB and touch whole huge pages; freed blocks are used again") {
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
  arena.allocate(2 * kBlock + 1);  // a separate mapping
  CHECK(arena.touched() == 22 * kPage);
}

TEST_CASE("dry run: the buffers of a matrix product count, and are no tensors") {
  const DryRun dry(Device::cpu);
  const int64_t before = memory_use(Device::cpu).current;
  const Tensor x = zeros({512, 512}, Dtype::f64, Device::cpu), w = zeros({512, 512}, Dtype::f64, Device::cpu), y = linear(x, w, Tensor());
  CHECK(memory_use(Device::cpu).current - before == 3 * x.bytes());
  CHECK(dry.arena_bytes() >= 3 * x.bytes() + (1 << 20));
}

TEST_CASE("dry run: tensors from before and after it are real") {
  const Tensor before = zeros({1000}, Dtype::f32, Device::cpu);
  before.data<float>()[7] = 3;
  Tensor outlives, replaced = zeros({1000}, Dtype::f32, Device::cpu);
  {
    const DryRun dry(Device::cpu);
    outlives = zeros({int64_t{1} << 40}, Dtype::f32, Device::cpu);
    replaced = {};
    CHECK(message_of([] { const DryRun second(Device::cpu); }) == "dry run: already active");
  }
  CHECK(item(outlives, int64_t{1} << 39) == 0);
  outlives = {};
  CHECK(item(before, 7) == 3);
  CHECK(message_of([] { const DryRun dry(Device::cuda); }) ==
        "dry run: expected cpu or cuda_emulated (needs the same memory as cuda), got cuda");
}

TEST_CASE("plan: the tape is that of a forward in training") {
  const ModelConfig config = small_model();
  Model model(config);
  model.init(1);
  model.place_for_training(Dtype::f32, Device::cpu);
  const Tensor ids_bc = zeros({2, 16}, Dtype::i64, Device::cpu);
  const auto printed = [](const auto& print) {
    char* text = nullptr;
    size_t bytes = 0;
    std::FILE* const file = open_memstream(&text, &bytes);
    print(file);
    std::fclose(file);
    const std::unique_ptr<char, void (*)(void*)> owner(text, std::free);
    return std::string(text, bytes);
  };
  const std::string expected = printed([&](std::FILE* file) {
    const Training on;
    const Tape tape;
    const Tensor loss = model.loss({ids_bc, ids_bc});
    tape.print(file);
  });
  CHECK(std::count(expected.begin(), expected.end(), '\n') > 20);
  const auto planned = [&](const StepShape& shape) { return printed([&](std::FILE* file) { print_tape(config, shape, file); }); };
  CHECK(planned({.sequences = 2, .context = 16, .micro_batches = 3}) == expected);
  CHECK(planned({.sequences = 2, .context = 16, .recompute_blocks = true}) != expected);
}

TEST_CASE("request watch: it is called with the bytes on its device, one at a time") {
  std::vector<int64_t> requests;
  {
    const RequestWatch watch(Device::cpu, [&](const void*, int64_t bytes) { requests.push_back(bytes); });
    const Tensor a({3}), b({5}, Dtype::f64);
    CHECK_THROWS_WITH_AS(RequestWatch(Device::cpu, [](const void*, int64_t) {}), "request watch: already active on this thread", Error);
  }
  const Tensor c({7});
  CHECK(requests == std::vector<int64_t>{12, 40, -1, -1});
  CHECK_THROWS_WITH_AS(plan_step(small_model(), {}, {1, 49, 1}), "plan: the context is 49, expected at most the model's 48", Error);
}
