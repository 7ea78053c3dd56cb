// Gradients of weights as products: dW_mn = sum over k tokens of dy_km x_kn in f32, for the models that ricci-bench-training measures and
// for one long step of a small one.
// Other rows are for GPUs, or if asked for: square_8192, because no product is faster, copy_2GiB, the same of memory, and the products of
// GPT-2 with 16,384 tokens, next to torch/products.py. Those without _dw are of the forward: y_km = sum over n of x_kn w_mn, in the dtype.
//   ricci-bench-products [name ...] [--list] [--steps=N] [--dtype=f32|bf16] [--device=cpu] [--tuned=FILE]
// Prints "measure NAME VALUE UNIT": the median, the fastest and the processor time of a product, and its operations per second.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "cuda/gemm/cublas/tuned_products.h"
#include "cuda/gemm/gemm.h"
#include "tests/bench/measured_steps.h"

using namespace ricci;

namespace {

struct Case {
  const char* name;
  int64_t m, n, k;
  bool forward = false, small = true;
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
    {"square_8192", 8192, 8192, 8192, false, false},
    {"gpt2_16x1024_qkv", 2304, 768, 16384, true, false},
    {"gpt2_16x1024_qkv_dw", 2304, 768, 16384, false, false},
    {"gpt2_16x1024_proj", 768, 768, 16384, true, false},
    {"gpt2_16x1024_proj_dw", 768, 768, 16384, false, false},
    {"gpt2_16x1024_up", 3072, 768, 16384, true, false},
    {"gpt2_16x1024_up_dw", 3072, 768, 16384, false, false},
    {"gpt2_16x1024_down", 768, 3072, 16384, true, false},
    {"gpt2_16x1024_down_dw", 768, 3072, 16384, false, false},
    {"gpt2_16x1024_head", 50304, 768, 16384, true, false},
    {"gpt2_16x1024_head_dw", 50304, 768, 16384, false, false},
};

// clang-format off
Gemm forward(const Case& c, const bench::Options& options, const Tensor& w_mn, const Tensor& x_kn, const Tensor& y_km) {
  return {.device = options.on(), .dtype = options.as(), .batch = 1, .m = c.k, .n = c.m, .k = c.n, .a = x_kn.raw(), .b = w_mn.raw(),
          .a_at = {c.n, 1, 0}, .b_at = {1, c.n, 0}, .c = y_km.raw(), .c_at = {c.m, 1, 0}};
}

Gemm gradient(const Case& c, const bench::Options& options, const Tensor& dy_km, const Tensor& x_kn, const Tensor& dw_mn) {
  return {.device = options.on(), .dtype = options.as(), .batch = 1, .m = c.m, .n = c.n, .k = c.k, .a = dy_km.raw(), .b = x_kn.raw(),
          .a_at = {1, c.m, 0}, .b_at = {c.n, 1, 0}, .c = dw_mn.raw(), .c_at = {c.n, 1, 0}, .c_f32 = options.as() == Dtype::bf16};
}
// clang-format on

void measure(const Case& c, const bench::Options& options) {
  const Tensor left = bench::random({c.m, c.forward ? c.n : c.k}, 1, options.as(), options.on());
  const Tensor x_kn = bench::random({c.k, c.n}, 2, options.as(), options.on());
  const Tensor result = zeros({c.m, c.forward ? c.k : c.n}, c.forward ? options.as() : Dtype::f32, options.on());
  const Gemm product = (c.forward ? forward : gradient)(c, options, left, x_kn, result);
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
  std::string tuned;
  options.seconds = 1;
  const apps::AppText text{"ricci-bench-products", "The speed of products of gradients of weights."};
  return apps::run_app(
      argc, argv, text,
      [&](CLI::App& app) {
        bench::add_options(app, options);
        app.add_option("--tuned", tuned, "time the algorithms of cuBLASLt and keep the fastest in this file");
      },
      [&] {
        if (!tuned.empty()) tune_products(TunedProducts(tuned));
        if (options.as() == Dtype::f64) fail("products are measured in f32 or bf16");
        std::vector<std::string> names;
        for (const Case& c : kCases) names.emplace_back(c.name);
        names.emplace_back(kCopy);
        return bench::measure_named(
            options, names, [&](size_t i) { return (i < std::size(kCases) && kCases[i].small) || options.on() != Device::cpu; },
            [&](size_t i) { i < std::size(kCases) ? measure(kCases[i], options) : measure_copy(options); });
      });
}
