// Forward and backward of single mixers and of stacks of blocks, next to torch/mixers.py; tests/bench/compare.py --bench mixers runs both
// in turn. 4096 tokens in total, width 512:
//   stack_MIXER_N   6 post-norm blocks with a feed-forward width of 512 and one head, without embedding and vocabulary
//   mixer_MIXER_N   one mixer of 8 heads with its maps
//   shift_and_sum   the op on [64 1024 768] with nine levels, on GPUs or by name: bytes of its arrays, once each, per second
//   ricci-bench-mixers [name ...] [--list] [--steps=N] [--dtype=f32|bf16] [--device=cpu]
// Prints "measure NAME VALUE UNIT": the median and the fastest step, the processor time of a step, the peak memory of the process, FLOPs of
// the products per second, and the floor of a step: its FLOPs at the measured peak plus the inputs and outputs of its ops at the measured
// bandwidth, both measured in the same run.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "apps/lab/benchmark/benchmark.h"
#include "autograd/tape.h"
#include "cuda/peaks.h"
#include "ops/shift_and_sum/shift_and_sum.h"
#include "tests/bench/measured_steps.h"

using namespace ricci;

namespace {

constexpr int64_t kTokens = 4096, kWidth = 512, kLayers = 6;

using bench::Options;

double floor_seconds(const Options& options, const apps::MixerStep& mixer_step) {
  static const Peaks peaks = measured_peaks(options.on(), options.as());
  const trace::Counter counter;
  mixer_step.run();
  double seconds = 0;
  for (const auto& [op, work] : counter.work())
    if (!op.starts_with("reshape")) seconds += work.flops / peaks.flops + work.bytes / peaks.bytes;  // a view moves nothing
  return seconds;
}

void measure(const std::string& name, const Options& options, const apps::MixerStep& mixer_step, double flops) {
  const bench::Steps steps = bench::measured_steps(options, [&](int) { mixer_step.run(); });
  bench::report(name, steps, options.on());
  std::printf("measure %s_products %.1f GFLOP/s\n", name.c_str(), flops / steps.median() * 1e-9);
  bench::report_floor(name, steps, floor_seconds(options, mixer_step));
}

// FLOPs of the products, forward and backward: 6 per weight of a map and token; causal attention 12 c / 2 d per token.
template <class M> double flops_of(const std::vector<Parameter*>& parameters, int64_t context, int64_t mixers) {
  double weights = 0;
  for (const Parameter* p : parameters)
    if (p->role == Role::matrix && p->value.shape().rank() == 2 && !p->path.ends_with("_metric"))
      weights += static_cast<double>(p->value.size());
  if (std::is_same_v<M, Metric>) weights += static_cast<double>(kWidth * kWidth / 8 * mixers);  // p M
  const double attention = std::is_same_v<M, Dispatcher> ? 0 : 6.0 * static_cast<double>(context * kWidth * mixers);
  return (6 * weights + attention) * kTokens;
}

apps::StepSize size_of(int64_t context, const Options& options) {
  apps::StepSize size;
  size.width = kWidth, size.layers = kLayers, size.sequences = kTokens / context, size.positions = context;
  size.dtype = options.as(), size.device = options.on();
  return size;
}

template <class M> void measure_stack(const std::string& name, int64_t context, const Options& options) {
  apps::StepSize size = size_of(context, options);
  size.heads = 1;
  const apps::MixerStep step = apps::make_step(kind_of<M>, size);
  measure(name, options, step, flops_of<M>(step.parameters, context, kLayers));
}

template <class M> void measure_mixer(const std::string& name, int64_t context, const Options& options) {
  apps::StepSize size = size_of(context, options);
  size.heads = 8, size.alone = true;
  const apps::MixerStep step = apps::make_step(kind_of<M>, size);
  measure(name, options, step, flops_of<M>(step.parameters, context, 1));
}

constexpr const char* kShiftAndSum = "shift_and_sum";

void report_bandwidth(const char* pass, const bench::Steps& steps, int64_t bytes) {
  std::printf("measure %s_%s %.1f GB/s\n", kShiftAndSum, pass, static_cast<double>(bytes) / steps.median() * 1e-9);
  std::fflush(stdout);
}

// The forward reads v and the coefficients and writes y; the backward reads them and dy, and writes the gradients of v and of
// the coefficients.
void measure_shift_and_sum(const Options& options) {
  constexpr int64_t kBatch = 64, kContext = 1024, kColumns = 768, kLevels = 9;
  const auto random = [&](int64_t width, uint64_t stream) {
    return bench::random({kBatch, kContext, width}, stream, options.as(), options.on());
  };
  const Tensor v_bcd = random(kColumns, 1), coef_bcx = random(kLevels, 2), dy_bcd = random(kColumns, 3);
  const int64_t v_bytes = v_bcd.bytes(), coef_bytes = coef_bcx.bytes();
  const bench::Steps forward = bench::measured_steps(options, [&](int) {
    shift_and_sum(v_bcd, coef_bcx, {});
    synchronize(options.on());
  });
  report_bandwidth("forward", forward, 2 * v_bytes + coef_bytes);
  const bench::Steps both = bench::measured_steps(options, [&](int) {
    Tape tape;
    tape.backward(shift_and_sum(tape.watch(v_bcd), tape.watch(coef_bcx), {}), dy_bcd);
    synchronize(options.on());
  });
  report_bandwidth("forward_backward", both, 5 * v_bytes + 3 * coef_bytes);
}

struct Row {
  std::string name;
  std::function<void(const std::string&, const Options&)> run;
};

std::vector<Row> rows() {
  std::vector<Row> all = {{kShiftAndSum, [](const std::string&, const Options& options) { measure_shift_and_sum(options); }}};
  const auto stack = [&]<class M>(int64_t context) {
    all.push_back({"stack_" + std::string(M::kName) + "_" + std::to_string(context),
        [=](const std::string& name, const Options& options) { measure_stack<M>(name, context, options); }});
  };
  const auto mixer = [&]<class M>(int64_t context) {
    all.push_back({"mixer_" + std::string(M::kName) + "_" + std::to_string(context),
        [=](const std::string& name, const Options& options) { measure_mixer<M>(name, context, options); }});
  };
  for (int64_t context : {512, 1024})
    mixer.operator()<Sdp>(context), mixer.operator()<Metric>(context), mixer.operator()<Dispatcher>(context);
  for (int64_t context : {128, 512, 1024, 2048, 4096}) stack.operator()<Dispatcher>(context), stack.operator()<Sdp>(context);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const apps::AppText text{"ricci-bench-mixers", "The speed of mixers, forward and backward."};
  return apps::run_app(
      argc, argv, text, [&](CLI::App& app) { bench::add_options(app, options); },
      [&] {
        const std::vector<Row> all = rows();
        std::vector<std::string> names;
        for (const Row& row : all) names.push_back(row.name);
        return bench::measure_named(
            options, names, [&](size_t i) { return names[i] != kShiftAndSum || options.on() != Device::cpu; },
            [&](size_t i) { all[i].run(names[i], options); });
      });
}
