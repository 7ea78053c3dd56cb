// One training step (forward, backward, gradient norm, clipping, AdamW) on random tokens, for common benchmark models.
// tests/bench/torch/training.py measures it in PyTorch on the CPU, torch/train.py on a GPU. tests/bench/compare.py runs ricci and PyTorch
// in turn.
//   ricci-bench-training [name ...] [--list] [--steps=N] [--dtype=f32|bf16] [--device=cpu] [--graph]
// Without a name: the small models.
// Prints "measure NAME VALUE UNIT": the median and the fastest step, the peak of memory, and the FLOPs of the products per second: 6 per
// weight and token, and 12 layers d context / 2 (causal) per token in attention.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/batches.h"
#include "apps/run/train_config.h"
#include "models/training/train_step.h"
#include "tests/bench/measured_steps.h"

using namespace ricci;

namespace {

struct Case {
  const char* name;
  Preset preset;
  int64_t vocab, d, heads, layers, ff, batch, context;
  bool bias;
  bool small = true;
  std::optional<int64_t> kv_heads = std::nullopt;
};

constexpr Case kCases[] = {
    {"nano_12x64", Preset::gpt, 65, 128, 4, 4, 512, 12, 64, false},
    {"gpt2_4x64", Preset::gpt, 50257, 768, 12, 12, 3072, 4, 64, true},
    {"gpt2_4x256", Preset::gpt, 50257, 768, 12, 12, 3072, 4, 256, true},
    {"msa_20x512", Preset::msa, 28996, 512, 1, 6, 512, 20, 512, true},
    {"smollm2_4x256", Preset::llama, 49152, 576, 9, 30, 1536, 4, 256, false, true, 3},
    {"gpt2_4x1024", Preset::gpt, 50257, 768, 12, 12, 3072, 4, 1024, true, false},
    {"gpt2_64x1024", Preset::gpt, 50257, 768, 12, 12, 3072, 64, 1024, true, false},
};

struct Options : bench::Options {
  bool graph = false;
  Options() { seconds = 10; }
};

ModelConfig config_of(const Case& c) {
  ModelConfig config;
  config.preset = c.preset, config.vocab = c.vocab, config.ctx = c.context, config.d = c.d, config.settings<Sdp>().heads = c.heads;
  config.layers = c.layers, config.block.ff = c.ff, config.block.bias = config.block.norm_bias = c.bias;
  config.settings<Sdp>().kv_heads = c.kv_heads;
  apply_preset(config);
  if (config.block.activation == Activation::gelu && c.bias) config.block.activation = Activation::gelu_tanh;  // as in GPT-2
  check(config);
  return config;
}

Batch random_batch(const Case& c) {
  const int64_t tokens = c.batch * c.context;
  const Shape bc{c.batch, c.context};
  return make_batch(tensor_of(bench::random_ids(tokens, c.vocab, 1), bc), tensor_of(bench::random_ids(tokens, c.vocab, 2), bc));
}

apps::TrainConfig training_of(const Options& options) {
  apps::TrainConfig config;
  config.cuda_graph = options.graph, config.seed = 1;
  return config;  // beta2 0.99, weight decay 0.1, clipping to norm 1
}

void report(const Case& c, const bench::Steps& steps, int64_t parameters, Device device, double loss) {
  const double tokens_per_second = static_cast<double>(c.batch * c.context) / steps.median();
  const double of_token = 6 * static_cast<double>(parameters) + 6 * static_cast<double>(c.layers * c.d * c.context);
  bench::report(c.name, steps, device);
  std::printf("measure %s_speed %.0f tokens/s\nmeasure %s_products %.1f GFLOP/s\n", c.name, tokens_per_second, c.name,
      of_token * tokens_per_second * 1e-9);
  std::printf("measure %s_loss %.6f nats\n", c.name, loss);
  std::fflush(stdout);
}

void measure(const Case& c, const Options& options) {
  const Device device = options.on();
  const apps::TrainConfig config = training_of(options);
  reset_peak(device);
  Model model(config_of(c));
  model.init(config.seed);
  model.place_for_training(options.as(), device);
  Optimizer optimizer(model.parameters(), config.optimizer);
  TrainStep train_step(model, optimizer, device, apps::step_options(config));
  const std::vector<Batch> micro_batches{to(random_batch(c), device)};
  double loss = 0;
  const bench::Steps steps = bench::measured_steps(options, [&](int step) { loss = train_step.run(micro_batches, step, 1e-4).loss; });
  report(c, steps, model.parameter_count(), device, loss);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const apps::AppText text{"ricci-bench-training", "The speed of training steps on random tokens."};
  const auto setup = [&](CLI::App& app) {
    bench::add_options(app, options);
    app.add_flag("--graph", options.graph, "record a step as a CUDA graph");
  };
  return apps::run_app(argc, argv, text, setup, [&] {
    std::vector<std::string> names;
    for (const Case& c : kCases) names.push_back(c.name);
    return bench::measure_named(
        options, names, [](size_t i) { return kCases[i].small; }, [&](size_t i) { measure(kCases[i], options); });
  });
}
