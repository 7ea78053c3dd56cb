// Savings by models of several scales, at the multi-scale paper's width of 768, 12 heads and 31,300 tokens:
//   memory      top-down 64, 16, 4, 1 with 7, 7, 8, 8 layers, beside 12 layers of vanilla on 512 tokens: the most bytes of activations and
//               buffers in a training step, and of all tensors, each beside what ricci-plan says. On 512 tokens, and on the 448 positions
//               that the paper's table 8 counts, since the paper leaves out those that do not hear every scale
//   generation  256 tokens after 64, both with caches, top-down with 2, 4, 8, 12 and with 7, 7, 8, 8 layers in turn with 14 layers of
//               vanilla: the ratio of their times, and what it is at most where only layers and the vocabulary cost time
//   retina      its attention with windows 0:8, 8:256, 256:512 on 1, 4 and 16 beside full attention, forward and backward: time, FLOPs
//   ricci-bench-scales [name ...] [--list] [--steps=N] [--dtype=f32|bf16] [--device=cpu]
// Prints "measure NAME VALUE UNIT".
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "autograd/tape.h"
#include "core/random.h"
#include "cuda/verbs/arithmetic.h"
#include "models/layers/visit.h"
#include "models/planning/plan.h"
#include "tests/bench/measured_steps.h"

using namespace ricci;
using bench::Options;

namespace {

constexpr int64_t kWidth = 768, kHeads = 12, kVocab = 31300, kContext = 512;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}
void measure(const std::string& name, double value, const char* unit) {
  std::printf("measure %s %.4f %s\n", name.c_str(), value, unit);
  std::fflush(stdout);
}

ModelConfig vanilla(int64_t layers) {
  ModelConfig config;
  apply_preset(config);
  config.vocab = kVocab, config.ctx = kContext, config.d = kWidth, config.settings<Sdp>().heads = kHeads, config.layers = layers;
  resolve(config);
  return config;
}
// Layers from fine to coarse.
ModelConfig top_down(const std::vector<int64_t>& layers) {
  ModelConfig config = vanilla(1);
  config.family = family_of<TopDown>, config.scales.scales = {1, 4, 16, 64}, config.stack_layers.layers = layers;
  config.settings<TopDown>().loss_from = LossFrom::first_full;
  return config;
}

// ---- Memory

StepMemory measure_training(const std::string& name, const ModelConfig& config, const StepShape& shape) {
  const Plan plan = plan_step(config, {}, shape);
  const StepMemory held = measure_step(config, {}, shape);
  const auto beside = [](int64_t value, int64_t other) { return static_cast<double>(value) / static_cast<double>(other); };
  measure(name + "_activations_buffers", static_cast<double>(held.working) * 1e-6, "MB");
  measure(name + "_activations_buffers_planned", beside(plan.working, held.working), "of measured");
  measure(name + "_all", static_cast<double>(held.peak) * 1e-6, "MB");
  measure(name + "_all_planned", beside(plan.peak, held.peak), "of measured");
  return held;
}

void measure_memory(const Options& options) {
  const auto shape = [&](int64_t context) { return StepShape{2, context, 1, options.as(), false, options.on(), {}}; };
  const StepMemory plain = measure_training("memory_vanilla", vanilla(12), shape(kContext));
  for (const int64_t context : {kContext, kContext - 64}) {
    const std::string name = "memory_topdown_" + std::to_string(context);
    const StepMemory scales = measure_training(name, top_down({8, 8, 7, 7}), shape(context));
    measure(name + "_activations_buffers_ratio", static_cast<double>(scales.working) / static_cast<double>(plain.working), "of vanilla");
    measure(name + "_all_ratio", static_cast<double>(scales.peak) / static_cast<double>(plain.peak), "of vanilla");
  }
}

// ---- Generation

struct Writer {
  Model model;
  std::unique_ptr<DecodingState> state;
  Device device;
  int64_t position = 0;

  Writer(const ModelConfig& config, const Options& options) : model(config), device(options.on()) {
    model.init(1);
    model.place(options.as(), device);
  }
  void read(int64_t tokens) {
    const NoTape unrecorded;
    const Tensor ids_bc({1, tokens}, Dtype::i64);
    for (int64_t i = 0; i < tokens; ++i) ids_bc.data<int64_t>()[i] = (17 * (position + i) + 3) % kVocab;
    model.advance(to(ids_bc, device), *state);
    synchronize(device);
    position += tokens;
  }
  void begin(int64_t prompt) {
    state = model.init_state(1), position = 0;
    read(prompt);
  }
};

// Amortised layers per token, and the vocabulary's share in layers.
double ideal_ratio(const ModelConfig& config, int64_t vanilla_layers) {
  const double head = static_cast<double>(kVocab) / (12.0 * static_cast<double>(kWidth));
  double layers = 0;
  for (size_t i = 0; i < config.scales.scales.size(); ++i)
    layers += static_cast<double>(config.stack_layers.layers[i]) / static_cast<double>(config.scales.scales[i]);
  return (layers + head) / (static_cast<double>(vanilla_layers) + head);
}

void measure_generation(const Options& options) {
  constexpr int64_t kPrompt = 64, kTokens = 256, kTurn = 64, kVanilla = 14;
  Writer plain(vanilla(kVanilla), options);
  for (const auto& [name, layers] :
      {std::pair<std::string, std::vector<int64_t>>{"generation_2_4_8_12", {12, 8, 4, 2}}, {"generation_7_7_8_8", {8, 8, 7, 7}}}) {
    const ModelConfig config = top_down(layers);
    Writer scales(config, options);
    std::vector<double> ratios, processor_ratios;  // one for every 64 tokens, in which every scale runs as often as in all
    for (int round = 0; round < std::max(2, options.steps); ++round) {
      plain.begin(kPrompt), scales.begin(kPrompt);
      for (int64_t t = 0; t < kTokens; t += kTurn) {
        double seconds[2] = {}, processor[2] = {};
        for (int64_t i = 0; i < kTurn; ++i)
          for (const int which : {0, 1}) {
            const double started = seconds_now(), before = bench::processor_seconds();
            (which ? scales : plain).read(1);
            seconds[which] += seconds_now() - started, processor[which] += bench::processor_seconds() - before;
          }
        ratios.push_back(seconds[1] / seconds[0]), processor_ratios.push_back(processor[1] / processor[0]);
      }
    }
    measure(name + "_time", median(ratios), "of vanilla 14");
    measure(name + "_processor", median(processor_ratios), "of vanilla 14");
    measure(name + "_layers_and_vocabulary", ideal_ratio(config, kVanilla), "of vanilla 14");
  }
}

// ---- Retina

// The attention of a mixer, without its maps: what the ops called attention take of a step.
template <Mixer M> struct Attending {
  M mixer;
  Tensor x_bcd, dy_bcd;

  Attending(const typename M::Config& config, int64_t positions, const Options& options) : mixer({.d = kWidth, .ctx = positions}, config) {
    const auto drawn = [&](const Shape& shape, uint64_t stream) {
      const Tensor t(shape);
      fill_normal(t.data<float>(), t.size(), 0.0f, 1.0f, Philox{1, stream});
      return to(convert(t, options.as()), options.on());
    };
    each_parameter(mixer, [&](const std::string& path, Parameter& p) {
      p.path = path, draw(p, 1);
      p.value = to(convert(p.value, options.as()), options.on());
    });
    const Shape bcd{4096 / positions, positions, kWidth};
    x_bcd = drawn(bcd, 1), dy_bcd = drawn(bcd, 2);
  }
  void step() {
    {
      Tape tape;
      const Tensor y_bcd = mixer(tape.watch(x_bcd), Tensor());
      tape.backward(y_bcd, dy_bcd);
    }
    each_parameter(mixer, [](const std::string&, Parameter& p) { p.grad = {}; });
  }
  trace::Work timed() {
    const trace::Timer timer;
    step();
    trace::Work all;
    for (const auto& [op, work] : timer.work())
      if (op.starts_with("attention")) all.seconds += work.seconds, all.flops += work.flops;
    return all;
  }
};

void measure_retina(const Options& options) {
  AttentionConfig heads;
  heads.heads = kHeads;
  RetinaAttention::Config config{.scales = {{1, 4, 16}}, .down = {}, .retina = {}, .attention = heads};
  config.retina.windows = {{0, 8}, {8, 256}, {256, 512}};
  for (const int64_t positions : {512, 1024, 2048, 4096}) {
    const std::string name = "retina_" + std::to_string(positions);
    Attending<RetinaAttention> retina(config, positions, options);
    Attending<Sdp> full(SdpConfig{heads}, positions, options);
    retina.step(), full.step();
    std::vector<double> retina_seconds, full_seconds;
    double flops[2] = {};
    for (int round = 0; round < std::max(7, options.steps); ++round) {
      const trace::Work of_retina = retina.timed(), of_full = full.timed();
      retina_seconds.push_back(of_retina.seconds), full_seconds.push_back(of_full.seconds);
      flops[0] = of_retina.flops, flops[1] = of_full.flops;
    }
    measure(name + "_attention", median(retina_seconds) * 1e3, "ms for 4096 tokens");
    measure(name + "_attention_gflop", flops[0] * 1e-9, "GFLOP for 4096 tokens");
    measure(name + "_full_attention", median(full_seconds) * 1e3, "ms for 4096 tokens");
    measure(name + "_time", median(retina_seconds) / median(full_seconds), "of full attention");
    measure(name + "_flops", flops[0] / flops[1], "of full attention");
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const apps::AppText text{"ricci-bench-scales", "Memory and speed of models of several scales beside those of one."};
  return apps::run_app(
      argc, argv, text, [&](CLI::App& app) { bench::add_options(app, options); },
      [&] {
        const std::vector<std::pair<std::string, void (*)(const Options&)>> rows = {
            {"memory", measure_memory}, {"generation", measure_generation}, {"retina", measure_retina}};
        std::vector<std::string> names;
        for (const auto& row : rows) names.push_back(row.first);
        return bench::measure_named(
            options, names, [](size_t) { return true; }, [&](size_t i) { rows[i].second(options); });
      });
}
