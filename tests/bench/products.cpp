// Gradients of weights as products: dW_mn = sum over k tokens of dy_km x_kn, written anew, for the models that ricci-bench-training
// measures and for one long step of a small one.
// Two more rows are for GPUs, or if asked for: square_8192, what products can reach at most, and copy_2GiB, the same of memory.
//   ricci-bench-products [name ...] [--list] [--steps=N] [--dtype=f32|bf16] [--device=cpu]
// Prints "measure NAME VALUE UNIT": the median, the fastest and the processor time of a product, and its operations per second.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "cuda/gemm/gemm.h"
#include "tests/bench/measured_steps.h"

using namespace ricci;

namespace {

struct Case {
  const char* name;
  int64_t m, n, k;
};

constexpr Case kCases[] = {
    {"nano_12x64_up", 512, 128, 768},
    {"gpt2_4x256_qkv", 2304, 768, 1024},
    {"gpt2_4x256_up", 3072, 768, 1024},
    {"gpt2_4x256_down", 768, 3072, 1024},
    {"msa_20x512_ff", 512, 512, 10240},
    {"small_4096_qkv", 1152, 384, 4096},
    {"small_4096_up", 1536, 384, 4096},
    {"small_4096_down", 384, 1536, 4096},
    {"wide_4096_up", 2048, 512, 4096},
    {"wide_4096_down", 512, 2048, 4096},
    {"square_8192", 8192, 8192, 8192},
};

void measure(const Case& c, const bench::Options& options) {
  const Tensor dy_km = bench::random({c.k, c.m}, 1, options.as(), options.on());
  const Tensor x_kn = bench::random({c.k, c.n}, 2, options.as(), options.on());
  const Tensor dw_mn = zeros({c.m, c.n}, Dtype::f32, options.on());
  const Gemm product{.device = options.on(),
      .dtype = options.as(),
      .batch = 1,
      .m = c.m,
      .n = c.n,
      .k = c.k,
      .a = dy_km.raw(),
      .b = x_kn.raw(),
      .a_at = {1, c.m, 0},
      .b_at = {c.n, 1, 0},
      .c = dw_mn.raw(),
      .c_at = {c.n, 1, 0},
      .c_f32 = options.as() == Dtype::bf16};
  const bench::Steps steps = bench::measured_steps(options, [&](int) {
    gemm(product);
    synchronize(options.on());
  });
  bench::report(c.name, steps, options.on());
  const double operations = 2.0 * static_cast<double>(c.m) * static_cast<double>(c.n) * static_cast<double>(c.k);
  std::printf("measure %s_speed %.1f GFLOP/s\n", c.name, operations / steps.median() * 1e-9);
  std::fflush(stdout);
}

constexpr const char* kCopy = "copy_2GiB";

// From one gibibyte to another: both count.
void measure_copy(const bench::Options& options) {
  const int64_t n = int64_t{1} << 28;
  const Tensor from = zeros({n}, Dtype::f32, options.on()), to = zeros({n}, Dtype::f32, options.on());
  const bench::Steps steps = bench::measured_steps(options, [&](int) {
    copy(to, from);
    synchronize(options.on());
  });
  bench::report(kCopy, steps, options.on());
  std::printf("measure %s_bandwidth %.1f GB/s\n", kCopy, 8.0 * static_cast<double>(n) / steps.median() * 1e-9);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  bench::Options options;
  options.seconds = 1;
  const apps::AppText text{"ricci-bench-products", "The speed of products of gradients of weights."};
  return apps::run_app(
      argc, argv, text, [&](CLI::App& app) { bench::add_options(app, options); },
      [&] {
        if (options.as() == Dtype::f64) fail("products are measured in f32 or bf16");
        std::vector<std::string> names;
        for (const Case& c : kCases) names.emplace_back(c.name);
        names.emplace_back(kCopy);
        const size_t of_every_device = std::size(kCases) - 1;
        return bench::measure_named(
            options, names, [&](size_t i) { return i < of_every_device || options.on() != Device::cpu; },
            [&](size_t i) { i < std::size(kCases) ? measure(kCases[i], options) : measure_copy(options); });
      });
}
