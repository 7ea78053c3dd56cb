// The memory of a step as it is measured equals its plan, by what it is held for.
#include <doctest/doctest.h>

#include "core/error.h"
#include "core/memory/memory.h"
#include "models/planning/plan.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

ModelConfig small_model(Family family) {
  ModelConfig config;
  config.family = family, config.vocab = 301, config.ctx = 48, config.d = 64, config.layers = 3;
  config.scales.scales = {1, 4, 16}, config.stack_layers.layers = {1};
  apply_preset(config);
  resolve(config);
  return config;
}

ModelConfig small_llama() {
  ModelConfig config;
  config.preset = Preset::llama, config.vocab = 301, config.ctx = 48, config.d = 64, config.layers = 3;
  apply_preset(config);
  SdpConfig& attention = config.settings<Sdp>();
  attention.heads = 4, attention.kv_heads = 2, attention.head_width = 24, attention.qk_norm = true;
  resolve(config);
  return config;
}

}  // namespace

TEST_CASE("step memory: the block of Llama, with shared keys") {
  ModelConfig config = small_llama();
  const int64_t h = 4, g = 2, k = 24, d = 64, f = 192, tokens = 2 * 32;
  for (const Device device : {Device::cpu, Device::cuda_emulated})
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
      const StepShape shape{2, 32, 1, dtype, false, device};
      const StepMemory measured = measure_step(config, {}, shape);
      const Plan planned = plan_step(config, {}, shape);
      CHECK(measured.parameters == 3 * (d * (h + 2 * g) * k + h * k * d + 3 * d * f + 2 * d + 2 * k) + 301 * d + d);
      CHECK(planned.parameters == measured.parameters);
      CHECK(static_cast<double>(measured.peak) == doctest::Approx(static_cast<double>(planned.peak)).epsilon(0.003));
      CHECK(static_cast<double>(measured.working) == doctest::Approx(static_cast<double>(planned.working)).epsilon(0.003));
      // Three times the forward: its maps, and the products of queries that see half of the keys on average.
      const double maps = 2.0 * static_cast<double>(tokens * (3 * (d * (h + 2 * g) * k + h * k * d + 3 * d * f) + 301 * d));
      const double scores = 3 * 2.0 * static_cast<double>(tokens * 33 * h * k);
      CHECK(planned.flops() > 3 * (maps + scores));
      CHECK(planned.flops() < 1.1 * 3 * (maps + scores));
      config.settings<Sdp>().kv_heads = h;  // the scores have the same size
      const Plan alone = plan_step(config, {}, shape);
      config.settings<Sdp>().kv_heads = g;
      CHECK(alone.parameters - planned.parameters == 3 * d * 2 * (h - g) * k);
      CHECK(alone.working > planned.working);
    }
}

TEST_CASE("step memory: what is measured is what is planned") {
  for (const Device device : {Device::cpu, Device::cuda_emulated})
    for (const Family family : {family_of<Decoder>, family_of<TopDown>}) {
      StepShape shape{2, 32, 1, Dtype::f32, false, device};
      if (family == family_of<Decoder>)
        shape.freeze = [](Model& model) {
          model.each_parameter([](const std::string& path, Parameter& p) { p.frozen = path.starts_with("blocks.0."); });
        };
      const StepMemory measured = measure_step(small_model(family), {}, shape), planned = plan_step(small_model(family), {}, shape);
      const auto same = [](int64_t a, int64_t b) {
        return static_cast<double>(a) == doctest::Approx(static_cast<double>(b)).epsilon(0.003);
      };
      CHECK(measured.parameters == planned.parameters);
      CHECK(same(measured.peak, planned.peak));
      CHECK(same(measured.working, planned.working));
      CHECK(measured.at_peak[static_cast<size_t>(HeldFor::parameters)] == planned.at_peak[static_cast<size_t>(HeldFor::parameters)]);
      CHECK(measured.at_peak[static_cast<size_t>(HeldFor::optimizer_state)] ==
            planned.at_peak[static_cast<size_t>(HeldFor::optimizer_state)]);
      int64_t sum = 0;
      for (const int64_t bytes : measured.at_peak) sum += bytes;
      CHECK(sum == measured.peak);
      CHECK(measured.working < measured.peak);
      CHECK(measured.working >=
            measured.at_peak[static_cast<size_t>(HeldFor::activations)] + measured.at_peak[static_cast<size_t>(HeldFor::other)]);
    }
}

// Weights, gradients and optimizer state do not depend on the batch.
TEST_CASE("step memory: activations and workspace grow with the batch") {
  StepShape shape{4, 48, 1, Dtype::f32, false, Device::cpu};
  const StepMemory once = measure_step(small_model(family_of<Decoder>), {}, shape);
  shape.sequences = 8;
  const StepMemory twice = measure_step(small_model(family_of<Decoder>), {}, shape);
  CHECK(static_cast<double>(twice.working) == doctest::Approx(2.0 * static_cast<double>(once.working)).epsilon(0.05));
  CHECK(twice.peak - once.peak == doctest::Approx(static_cast<double>(twice.working - once.working)).epsilon(0.05));
}

TEST_CASE("request watch: it is told the bytes on its device, one at a time") {
  std::vector<int64_t> told;
  {
    const RequestWatch watch(Device::cpu, [&](int64_t bytes) { told.push_back(bytes); });
    const Tensor a({3}), b({5}, Dtype::f64);
    CHECK_THROWS_WITH_AS(RequestWatch(Device::cpu, [](int64_t) {}), "request watch: one is alive", Error);
  }
  const Tensor c({7});
  CHECK(told == std::vector<int64_t>{12, 40});
  CHECK_THROWS_WITH_AS(measure_step(small_model(family_of<Decoder>), {}, {1, 49, 1}), "plan: a context of 49, the model's is 48", Error);
}
