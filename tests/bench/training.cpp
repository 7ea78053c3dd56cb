// One training step (forward, backward, gradient norm, clipping, AdamW) on random tokens, for the models that other frameworks
// are measured on; tests/bench/torch_training.py is the same in PyTorch on the CPU, torch_train.py on a GPU;
// tests/bench/compare.py runs ricci and PyTorch in turn.
//   ricci-bench-training [name ...] [--steps=N] [--dtype=f32|bf16] [--device=cpu] [--graph]      no name: the small models
// Prints "measure NAME VALUE UNIT": the median and the fastest step, the peak of memory, and the operations of the
// products per second: 6 per weight and token, and 12 layers d context / 2 (of a causal mask) per token in attention.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "apps/config/train_config.h"
#include "apps/corpus/micro_batches.h"
#include "apps/terminal/cli.h"
#include "core/error.h"
#include "core/memory/memory.h"
#include "core/philox.h"
#include "cuda/device/device.h"
#include "cuda/trace.h"
#include "models/training/train_step.h"

using namespace ricci;

namespace {

struct Case {
  const char* name;
  Preset preset;
  int64_t vocab, d, heads, layers, ff, batch, context;
  bool bias;
  bool small = true;
};

constexpr Case kCases[] = {
    {"nano_12x64", Preset::gpt, 65, 128, 4, 4, 512, 12, 64, false},
    {"gpt2_4x64", Preset::gpt, 50257, 768, 12, 12, 3072, 4, 64, true},
    {"gpt2_4x256", Preset::gpt, 50257, 768, 12, 12, 3072, 4, 256, true},
    {"msa_20x512", Preset::msa, 28996, 512, 1, 6, 512, 20, 512, true},
    {"gpt2_4x1024", Preset::gpt, 50257, 768, 12, 12, 3072, 4, 1024, true, false},
    {"gpt2_64x1024", Preset::gpt, 50257, 768, 12, 12, 3072, 64, 1024, true, false},
};

struct Options {
  int steps = 0;  // 0: about ten seconds of them
  std::string dtype = "f32", device = "cpu";
  bool graph = false;
  std::vector<std::string> names;
};

ModelConfig config_of(const Case& c) {
  ModelConfig config;
  config.preset = c.preset, config.vocab = c.vocab, config.ctx = c.context, config.d = c.d, config.of<Sdp>().heads = c.heads;
  config.layers = c.layers, config.block.ff = c.ff, config.block.bias = config.block.norm_bias = c.bias;
  apply_preset(config);
  if (config.block.activation == Activation::gelu && c.bias) config.block.activation = Activation::gelu_tanh;  // as GPT-2 has it
  check(config);
  resolve(config);
  return config;
}

Batch random_batch(const Case& c) {
  const auto ids = [&](uint64_t seed) {
    std::vector<int64_t> drawn(static_cast<size_t>(c.batch * c.context));
    for (size_t i = 0; i < drawn.size(); ++i) drawn[i] = static_cast<int64_t>(Philox{seed, 0}.bits(i) % static_cast<uint64_t>(c.vocab));
    return drawn;
  };
  return {c.batch, c.context, ids(1), ids(2), c.batch * c.context};
}

double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

apps::TrainConfig training_of(const Options& options) {
  apps::TrainConfig config;
  config.cuda_graph = options.graph, config.seed = 1;
  return config;  // beta2 0.99, weight decay 0.1, clipping to norm 1
}

// On the CPU the most the process ever held, all models before this one included; on a GPU the peak of its tensors.
double memory_mb(Device device) {
  rusage usage{};
  if (device != Device::cpu || ::getrusage(RUSAGE_SELF, &usage) != 0) return static_cast<double>(memory_use(device).peak) * 1e-6;
  return static_cast<double>(usage.ru_maxrss) * 1.024e-3;
}

void report(const Case& c, std::vector<double> seconds, int64_t parameters, Device device, double loss) {
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2], tokens = static_cast<double>(c.batch * c.context);
  const double of_token = 6 * static_cast<double>(parameters) + 6 * static_cast<double>(c.layers * c.d * c.context);
  std::printf("measure %s_median %.3f ms\nmeasure %s_min %.3f ms\n", c.name, median * 1e3, c.name, seconds[0] * 1e3);
  std::printf("measure %s_speed %.0f tokens/s\nmeasure %s_products %.1f GFLOP/s\n", c.name, tokens / median, c.name, of_token * tokens / median * 1e-9);
  std::printf("measure %s_memory %.1f MB\nmeasure %s_loss %.6f nats\n", c.name, memory_mb(device), c.name, loss);
  std::fflush(stdout);
}

void measure(const Case& c, const Options& options) {
  const Device device = parse_device(options.device.c_str());
  const apps::TrainConfig config = training_of(options);
  reset_peak(device);
  Model model(config_of(c));
  model.init(config.seed);
  model.place_for_training(parse_dtype(options.dtype.c_str()), device);
  Optimizer optimizer(model.parameters(), config.optimizer);
  TrainStep train_step(model, optimizer, device, apps::step_options(config));
  const std::vector<MicroBatch> micro_batches{apps::micro_batch_of(random_batch(c), device)};
  std::vector<double> seconds;
  double loss = 0, total = 0;
  constexpr int kWarmUp = 3;
  for (int step = 0; options.steps ? step < options.steps + kWarmUp : step < kWarmUp + 5 || (total < 10 && step < 1000); ++step) {
    const double started = seconds_now();
    loss = train_step.run(micro_batches, step, 1e-4).loss;
    if (step < kWarmUp) {
      trace::restart();
      continue;
    }
    seconds.push_back(seconds_now() - started);
    total += seconds.back();
  }
  report(c, seconds, model.parameter_count(), device, loss);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const apps::AppText text{"ricci-bench-training", "The speed of training steps on random tokens."};
  const auto setup = [&](CLI::App& app) {
    app.add_option("names", options.names, "models; none: the small ones");
    app.add_option("--steps", options.steps, "that are measured; 0: about ten seconds of them");
    app.add_option("--dtype", options.dtype, "f32 or bf16");
    app.add_option("--device", options.device, "cpu, cuda or cuda_emulated");
    app.add_flag("--graph", options.graph, "record a step as a CUDA graph");
  };
  return apps::run_app(argc, argv, text, setup, [&] {
    for (const std::string& name : options.names)
      if (std::none_of(std::begin(kCases), std::end(kCases), [&](const Case& c) { return name == c.name; })) fail("{}: no such model", {name});
    for (const Case& c : kCases)
      if (options.names.empty() ? c.small : std::find(options.names.begin(), options.names.end(), c.name) != options.names.end()) measure(c, options);
    return 0;
  });
}
