// The products of a linear layer with k tokens: y_kn = sum_m x_km w_nm, and the gradients dx_km = sum_n dy_kn w_nm and
// dw_nm = sum_k dy_kn x_km. Their rows are NAME, NAME_dx and NAME_dw. Without a name the square layers are measured, in pairs: the lines of
// a matrix of 512, 1024 or 2048 columns fall into few sets of a cache, the lines of 528, 1040 or 2064 columns into all. For GPUs:
// square_8192 (the fastest product), copy_2GiB (the fastest memory) and the layers of GPT-2 with 16,384 tokens.
//   ricci-bench-products [name ...] [--list] [--steps=N] [--dtype=f32|bf16] [--device=cpu] [--peak] [--peer]
// Prints "measure NAME VALUE UNIT": the median, the fastest and the processor time of a product, and its operations per second.
// --peak measures the peak first and prints each speed as a share of it. --peer measures oneDNN's product after each, as NAME_onednn, on
// its own threads. OMP_NUM_THREADS sets the threads of both. With OMP_WAIT_POLICY=passive, waiting threads of oneDNN take no processor
// time. torch/products.py measures these rows in PyTorch, and compare.py runs both in turn.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#ifdef RICCI_HAS_ONEDNN
#include <dnnl.hpp>
#endif

#include "cuda/gemm/gemm.h"
#include "cuda/peaks.h"
#include "tests/bench/measured_steps.h"

using namespace ricci;

namespace {

struct Layer {
  const char* name;
  int64_t outputs, inputs, tokens;
  bool by_default = false;
};

constexpr Layer kLayers[] = {
    {"d512", 512, 512, 2048, true},
    {"d528", 528, 528, 2048, true},
    {"d768", 768, 768, 2048, true},
    {"d784", 784, 784, 2048, true},
    {"d1024", 1024, 1024, 2048, true},
    {"d1040", 1040, 1040, 2048, true},
    {"d2048", 2048, 2048, 2048, true},
    {"d2064", 2064, 2064, 2048, true},
    {"nano_12x64_up", 512, 128, 768},
    {"gpt2_4x256_qkv", 2304, 768, 1024},
    {"gpt2_4x256_up", 3072, 768, 1024},
    {"gpt2_4x256_down", 768, 3072, 1024},
    {"msa_20x512_ff", 512, 512, 10240},
    {"square_8192", 8192, 8192, 8192},
    {"gpt2_16x1024_qkv", 2304, 768, 16384},
    {"gpt2_16x1024_proj", 768, 768, 16384},
    {"gpt2_16x1024_up", 3072, 768, 16384},
    {"gpt2_16x1024_down", 768, 3072, 16384},
    {"gpt2_16x1024_head", 50304, 768, 16384},
};
constexpr const char* kParts[] = {"", "_dx", "_dw"};
constexpr const char* kCopy = "copy_2GiB";

struct Options : bench::Options {
  bool peer = false, peak = false;
  double flops = 0;  // per second, at the peak
};

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

void measure_calls(const Gemm& g, const std::string& name, const Options& options, const std::function<void()>& multiply) {
  const bench::Steps steps = bench::measured_steps(options, [&](int) { multiply(); });
  bench::report(name, steps, options.on());
  const double speed = 2.0 * static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k) / steps.median();
  std::printf("measure %s_speed %.1f GFLOP/s\n", name.c_str(), speed * 1e-9);
  if (options.peak) std::printf("measure %s_peak %.1f %%\n", name.c_str(), speed / options.flops * 100);
  std::fflush(stdout);
}

void measure(const Layer& l, size_t part, const Options& options) {
  const auto random = [&](const Shape& shape, uint64_t stream) { return bench::random(shape, stream, options.as(), options.on()); };
  const Tensor x_km = random({l.tokens, l.inputs}, 1), w_nm = random({l.outputs, l.inputs}, 2), y_kn = random({l.tokens, l.outputs}, 3);
  const Tensor dw_nm({l.outputs, l.inputs}, Dtype::f32, options.on());
  const Gemm products[] = {
      product(y_kn, x_km, Matrix(w_nm).transposed()), product(x_km, y_kn, w_nm), product(dw_nm, Matrix(y_kn).transposed(), x_km)};
  const std::string name = std::string(l.name) + kParts[part];
  measure_calls(products[part], name, options, [&] {
    gemm(products[part]);
    synchronize(options.on());
  });
  if (options.peer) measure_calls(products[part], name + "_onednn", options, by_onednn(products[part]));
}

// From one gibibyte to a second: read and written bytes.
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
  Options options;
  options.seconds = 1;
  const apps::AppText text{"ricci-bench-products", "The speed of a linear layer's products."};
  return apps::run_app(
      argc, argv, text,
      [&](CLI::App& app) {
        bench::add_options(app, options);
        app.add_flag("--peak", options.peak, "print each speed as a share of the measured peak, too");
        app.add_flag("--peer", options.peer, "measure the products of oneDNN on the CPU, too");
      },
      [&] {
        if (options.as() == Dtype::f64) fail("products are measured in f32 or bf16");
        if (options.peer && options.on() != Device::cpu) fail("--peer: only with --device cpu");
        if (options.peak) options.flops = measured_peaks(options.on(), options.as()).flops;
        std::vector<std::string> names;
        for (const Layer& layer : kLayers)
          for (const char* part : kParts) names.push_back(std::string(layer.name) + part);
        names.emplace_back(kCopy);
        const size_t rows = names.size() - 1, parts = std::size(kParts);
        return bench::measure_named(
            options, names, [&](size_t i) { return i < rows && kLayers[i / parts].by_default; },
            [&](size_t i) { i < rows ? measure(kLayers[i / parts], i % parts, options) : measure_copy(options); });
      });
}
