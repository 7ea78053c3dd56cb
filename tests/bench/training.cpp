// One training step (forward, backward, gradient norm, AdamW) on random tokens, for the models that other frameworks are
// measured on; tests/bench/torch_training.py is the same in PyTorch, tests/bench/compare.py runs the two in turn.
//   ricci-bench-training [name ...] [--steps=N] [--dtype=f32|bf16] [--device=cpu]      no name: every model
// Prints "measure NAME VALUE UNIT": the median and the fastest step, and the peak of memory in tensors.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/memory.h"
#include "core/philox.h"
#include "autograd/random.h"
#include "autograd/tape.h"
#include "cuda/device.h"
#include "cuda/trace.h"
#include "models/model.h"
#include "models/optim/optimizer.h"
#include "models/training.h"

using namespace ricci;

namespace {

struct Case {
  const char* name;
  const char* preset;
  int64_t vocab, d, heads, layers, ff, batch, context;
  bool bias;
};

constexpr Case kCases[] = {
    {"nano_12x64", "gpt", 65, 128, 4, 4, 512, 12, 64, false},
    {"gpt2_4x64", "gpt", 50257, 768, 12, 12, 3072, 4, 64, true},
    {"gpt2_4x256", "gpt", 50257, 768, 12, 12, 3072, 4, 256, true},
    {"msa_20x512", "msa", 28996, 512, 1, 6, 512, 20, 512, true},
};

struct Options {
  int steps = 0;  // 0: about ten seconds of them
  Dtype dtype = Dtype::f32;
  Device device = Device::cpu;
  std::vector<std::string> names;
};

ModelConfig config_of(const Case& c) {
  ModelConfig config;
  config.preset = c.preset, config.vocab = c.vocab, config.ctx = c.context, config.d = c.d, config.heads = c.heads;
  config.layers = {c.layers}, config.ff = c.ff, config.bias = config.norm_bias = c.bias;
  apply_preset(config);
  if (config.activation == "gelu" && c.bias) config.activation = "gelu_tanh";  // as GPT-2 has it
  check(config);
  resolve(config);
  return config;
}

Tensor random_ids(const Shape& shape, int64_t vocab, uint64_t seed) {
  const Tensor ids(shape, Dtype::i64);
  const Philox random{seed, 0};
  for (int64_t i = 0; i < ids.size(); ++i) ids.data<int64_t>()[i] = static_cast<int64_t>(random.bits(static_cast<uint64_t>(i)) % static_cast<uint64_t>(vocab));
  return ids;
}

double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void measure(const Case& c, const Options& options) {
  Model model(config_of(c));
  model.init(1);
  model.place_for_training(options.dtype, options.device);
  set_random_state({1, 0});
  OptimizerConfig optimizer_config;
  optimizer_config.beta2 = 0.99, optimizer_config.weight_decay = 0.1;
  Optimizer optimizer(model.parameters(), optimizer_config);
  const Tensor ids_bc = to(random_ids({c.batch, c.context}, c.vocab, 1), options.device);
  const Tensor targets_bc = to(random_ids({c.batch, c.context}, c.vocab, 2), options.device);
  std::vector<double> seconds;
  double loss = 0, total = 0;
  constexpr int kWarmUp = 3;
  for (int step = 0; options.steps ? step < options.steps + kWarmUp : step < kWarmUp + 5 || (total < 10 && step < 1000); ++step) {
    const double started = seconds_now();
    {
      const Training training;
      Tape tape;
      const Tensor nats = model.loss(ids_bc, targets_bc);
      loss = item(nats);
      tape.backward(nats);
    }
    const double norm = optimizer.gradient_norm();
    optimizer.step(1e-4, norm > 1 ? 1 / norm : 1);
    synchronize(options.device);
    if (step < kWarmUp) {
      trace::restart();
      continue;
    }
    seconds.push_back(seconds_now() - started);
    total += seconds.back();
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  std::printf("measure %s_median %.3f ms\nmeasure %s_min %.3f ms\n", c.name, median * 1e3, c.name, seconds[0] * 1e3);
  std::printf("measure %s_speed %.0f tokens/s\n", c.name, static_cast<double>(c.batch * c.context) / median);
  std::printf("measure %s_memory %.1f MB\nmeasure %s_loss %.6f nats\n", c.name, static_cast<double>(memory_use(options.device).peak) * 1e-6, c.name, loss);
  std::fflush(stdout);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i], value = argument.substr(argument.find('=') + 1);
    if (argument.starts_with("--steps="))
      options.steps = std::atoi(value.c_str());
    else if (argument.starts_with("--dtype="))
      options.dtype = value == "bf16" ? Dtype::bf16 : Dtype::f32;
    else if (argument.starts_with("--device="))
      options.device = parse_device(value.c_str());
    else
      options.names.push_back(argument);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = parse(argc, argv);
  for (const Case& c : kCases)
    if (options.names.empty() || std::find(options.names.begin(), options.names.end(), c.name) != options.names.end()) {
      reset_peak(options.device);
      measure(c, options);
    }
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "ricci-bench-training: %s\n", error.what());
  return 1;
}
