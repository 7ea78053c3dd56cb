// Gradients of weights as products: dW_mn = sum over k tokens of dy_km x_kn in f32, for the models that ricci-bench-training measures and
// for one long step of a small one.
// Other rows are for GPUs, or if asked for: square_8192, because no product is faster, copy_2GiB, the same of memory, and the products of
// GPT-2 with 16,384 tokens, next to torch/products.py. Those without _dw are of the forward: y_km = sum over n of x_kn w_mn, in the dtype.
//   ricci-bench-products [name ...] [--list] [--steps=N] [--dtype=f32|bf16] [--device=cpu] [--peer]
// Prints "measure NAME VALUE UNIT": the median, the fastest and the processor time of a product, and its operations per second.
// --peer measures oneDNN's product after each, as NAME_onednn, on its own threads. OMP_NUM_THREADS is the number of both, and
// OMP_WAIT_POLICY=passive keeps threads of oneDNN that wait from taking time of ours.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#ifdef RICCI_HAS_ONEDNN
#include <dnnl.hpp>
#endif

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

#ifdef RICCI_HAS_ONEDNN
std::function<void()> by_onednn(const Gemm& g) {
  using dnnl::memory;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto describe = [](int64_t rows, int64_t columns, const MatrixAt& at, bool f32) {
    return memory::desc(
        {rows, columns}, f32 ? memory::data_type::f32 : memory::data_type::bf16, memory::dims{at.row_stride, at.column_stride});
  };
  const bool f32 = g.dtype == Dtype::f32;
  const memory::desc a = describe(g.m, g.k, g.a_at, f32), b = describe(g.k, g.n, g.b_at, f32),
                     c = describe(g.m, g.n, g.c_at, f32 || g.c_f32);
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::matmul::primitive_desc description(engine, a, b, c);
#else
  const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), engine);
#endif
  const std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, memory(a, engine, const_cast<void*>(g.a))},
      {DNNL_ARG_WEIGHTS, memory(b, engine, const_cast<void*>(g.b))}, {DNNL_ARG_DST, memory(c, engine, g.c)}};
  return [product = dnnl::matmul(description), stream = dnnl::stream(engine), arguments]() mutable {
    product.execute(stream, arguments);
    stream.wait();
  };
}
#else
std::function<void()> by_onednn(const Gemm&) { fail("--peer: oneDNN was not found when this was built: apt-get install libdnnl-dev"); }
#endif

void measure_calls(const Case& c, const std::string& name, const bench::Options& options, const std::function<void()>& multiply) {
  const bench::Steps steps = bench::measured_steps(options, [&](int) { multiply(); });
  bench::report(name, steps, options.on());
  const double operations = 2.0 * static_cast<double>(c.m) * static_cast<double>(c.n) * static_cast<double>(c.k);
  std::printf("measure %s_speed %.1f GFLOP/s\n", name.c_str(), operations / steps.median() * 1e-9);
  std::fflush(stdout);
}

void measure(const Case& c, const bench::Options& options, bool peer) {
  const Tensor left = bench::random({c.m, c.forward ? c.n : c.k}, 1, options.as(), options.on());
  const Tensor x_kn = bench::random({c.k, c.n}, 2, options.as(), options.on());
  const Tensor result = zeros({c.m, c.forward ? c.k : c.n}, c.forward ? options.as() : Dtype::f32, options.on());
  const Gemm product = (c.forward ? forward : gradient)(c, options, left, x_kn, result);
  measure_calls(c, c.name, options, [&] {
    gemm(product);
    synchronize(options.on());
  });
  if (peer) measure_calls(c, std::string(c.name) + "_onednn", options, by_onednn(product));
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
  bool peer = false;
  options.seconds = 1;
  const apps::AppText text{"ricci-bench-products", "The speed of products of gradients of weights."};
  return apps::run_app(
      argc, argv, text,
      [&](CLI::App& app) {
        bench::add_options(app, options);
        app.add_flag("--peer", peer, "measure the products of oneDNN on the CPU, too");
      },
      [&] {
        if (options.as() == Dtype::f64) fail("products are measured in f32 or bf16");
        if (peer && options.on() != Device::cpu) fail("--peer: only with --device cpu");
        std::vector<std::string> names;
        for (const Case& c : kCases) names.emplace_back(c.name);
        names.emplace_back(kCopy);
        return bench::measure_named(
            options, names, [&](size_t i) { return (i < std::size(kCases) && kCases[i].small) || options.on() != Device::cpu; },
            [&](size_t i) { i < std::size(kCases) ? measure(kCases[i], options, peer) : measure_copy(options); });
      });
}
