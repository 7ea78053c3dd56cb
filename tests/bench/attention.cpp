// The speed of attention in bf16: forward, and forward with backward, next to torch/attention.py.
//   ricci-bench-attention --device cuda [--batch 16 --context 1024 --heads 12 --kv-heads 12] [--seconds 2]
// Each measure is the best of five rounds of calls, --seconds in total, after an unmeasured round. FLOPs of the products: 4 b heads c c
// width in the forward, 10 in the backward, half of it if causal.
#include "ops/attention/attention.h"

#include <CLI/CLI.hpp>

#include "autograd/tape.h"
#include "tests/bench/measured_steps.h"

using namespace ricci;

namespace {

struct Options {
  std::string device = "cuda";
  int64_t batch = 16, context = 1024, heads = 12, kv_heads = 0;  // 0: a key head for each query head
  double seconds = 2;
};

// Seconds of one call.
double time_of(const std::function<void()>& f, Device device, double seconds) {
  const auto calls = [&](int64_t n) {
    const double begin = seconds_now();
    for (int64_t i = 0; i < n; ++i) f();
    synchronize(device);
    return (seconds_now() - begin) / static_cast<double>(n);
  };
  calls(1);
  const int64_t n = std::max<int64_t>(1, static_cast<int64_t>(seconds / 5 / calls(1)));
  double best = calls(n);
  for (int round = 1; round < 5; ++round) best = std::min(best, calls(n));
  return best;
}

void measure(const Options& options, int64_t width, bool causal) {
  const Device device = parse_device(options.device.c_str());
  const int64_t b = options.batch, c = options.context, d = options.heads * width;
  const int64_t key_columns = (options.kv_heads ? options.kv_heads : options.heads) * width;
  const Parameter qkv{bench::random({b, c, d + 2 * key_columns}, 1, Dtype::bf16, device), {}, "qkv"};
  const Tensor dy = bench::random({b, c, d}, 2, Dtype::bf16, device);
  const AttentionOptions heads{.heads = options.heads, .kv_heads = options.kv_heads};
  const Visibility sees = causal ? Visibility::causal() : Visibility::not_causal();
  const auto attend = [&](const Arg& x) {
    return attention({x, 0, d}, {x, d, key_columns}, {x, d + key_columns, key_columns}, sees, heads);
  };
  const double pairs = static_cast<double>(c * c) / (causal ? 2 : 1);
  const double operations = static_cast<double>(4 * b * d) * pairs;
  const auto report = [&](const char* what, double work, double seconds) {
    std::printf("measure %s_hd%d_%s %.1f GFLOP/s\n", what, static_cast<int>(width), causal ? "causal" : "full", work / seconds * 1e-9);
    std::fflush(stdout);
  };
  report("forward", operations, time_of([&] { attend(qkv.value); }, device, options.seconds));
  const auto forward_backward = [&] {
    Tape tape;
    const Tensor y = attend(qkv);
    qkv.grad = {};
    tape.backward(y, dy);
  };
  report("forward_backward", 3.5 * operations, time_of(forward_backward, device, options.seconds));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const apps::AppText text{"ricci-bench-attention", "The speed of attention in bf16, forward and with its backward."};
  const auto setup = [&](CLI::App& app) {
    app.add_option("--device", options.device, "cpu, cuda or cuda_emulated");
    app.add_option("--batch", options.batch, "sequences")->check(apps::at_least_one);
    app.add_option("--context", options.context, "positions")->check(apps::at_least_one);
    app.add_option("--heads", options.heads, "of each width")->check(apps::at_least_one);
    app.add_option("--kv-heads", options.kv_heads, "heads of keys and values, which the others share; 0: one for each");
    app.add_option("--seconds", options.seconds, "of each measure");
  };
  return apps::run_app(argc, argv, text, setup, [&] {
    for (int64_t width : {64, 128})
      for (bool causal : {true, false}) measure(options, width, causal);
    return 0;
  });
}
