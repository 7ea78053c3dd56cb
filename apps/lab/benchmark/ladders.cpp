#include <fmt/format.h>

#include "apps/lab/benchmark/rungs.h"
#include "cuda/device/device.h"
#include "cuda/gemm/backends.h"
#include "ops/attention/attention.h"
#include "ops/attention/flash/flash.h"
#include "ops/attention/kernels.h"
#include "ops/elements/arithmetic.h"
#include "ops/first_rungs.h"
#include "ops/rows/layer_norm.h"
#include "ops/shift_and_sum/shift_and_sum.h"

namespace ricci::apps {
namespace {

constexpr int64_t kSequences = 16;  // for the ops that memory bounds: their tensors must not fit into the caches
constexpr auto kFirst = "ops/first_rungs.cpp";

// Random numbers on the device of the ladder; f64 ones are on the CPU, where the definitions are.
Tensor random(const LadderOptions& o, const Shape& shape, uint64_t seed, Dtype dtype) {
  return randn(shape, seed, dtype, dtype == Dtype::f64 ? Device::cpu : o.device);
}

double real(int64_t number) { return static_cast<double>(number); }

std::string bf16_rung_on_gpu(const LadderOptions& o, const std::array<Tensor, 3>& x) {
  using namespace attention_kernels;
  const Rows q{x[0]}, k{x[1]}, v{x[2]};
  const Checked checked = attention_kernels::check("attention", q, k, v, Visibility::causal(), {.heads = o.heads});
  switch (gpu_path(checked.problem, {q, k, v, q})) {
    case GpuPath::flash:
      return std::string("ops/attention/flash/") + (wgmma_takes(checked.problem, o.device) ? "wgmma/" : "") + "forward.cu";
    case GpuPath::padded: return "ops/attention/wide/padded.cpp";
    case GpuPath::products: return "ops/attention/wide/products.cu";
    case GpuPath::blocks: break;
  }
  return "ops/attention/gpu/forward.cu";
}

Ladder attention_ladder(const LadderOptions& o) {
  Ladder ladder{LadderKind::attention, fmt::format("{} queries and keys, causal, width {}, heads: {}", o.tokens, o.width, o.heads),
      2 * real(o.tokens * (o.tokens + 1)) * real(o.width), 4 * real(o.tokens * o.width)};
  const auto inputs = [&](Dtype dtype) {
    std::array<Tensor, 3> x;
    for (uint64_t i = 0; i < 3; ++i) x[i] = random(o, {1, o.tokens, o.width}, i + 1, dtype);
    return x;
  };
  const auto fused = [&](Dtype dtype, auto* op) {
    return [x = inputs(dtype), heads = o.heads, op] { op(Rows{x[0]}, Rows{x[1]}, Rows{x[2]}, Visibility::causal(), {.heads = heads}); };
  };
  ladder.rungs.push_back({"ops/attention/definition.cpp", Dtype::f64, fused(Dtype::f64, naive_attention)});
  ladder.rungs.push_back({kFirst, Dtype::f32,
      [x = inputs(Dtype::f32), heads = o.heads] { first_rungs::attention(x[0], x[1], x[2], Visibility::causal(), heads); }});
  if (o.device == Device::cpu) {
    ladder.rungs.push_back({"ops/attention/cpu/forward.cpp", Dtype::f32, fused(Dtype::f32, attention)});
    return ladder;
  }
  ladder.rungs.push_back({"ops/attention/gpu/forward.cu", Dtype::f32, fused(Dtype::f32, attention)});
  ladder.rungs.push_back({bf16_rung_on_gpu(o, inputs(Dtype::bf16)), Dtype::bf16, fused(Dtype::bf16, attention)});
  return ladder;
}

// c_mn = a_mk b_kn, all of them in rows.
struct Product {
  Tensor a_mk, b_kn, c_mn;
  Product(const LadderOptions& o, int64_t m, Dtype dtype)
      : a_mk(random(o, {m, o.width}, 1, dtype)), b_kn(random(o, {o.width, 4 * o.width}, 2, dtype)), c_mn(like(a_mk, {m, 4 * o.width})) {}
  Gemm gemm() const {
    const int64_t m = a_mk.shape()[0], k = a_mk.shape()[1], n = b_kn.shape()[1];
    return {.device = a_mk.device(),
        .dtype = a_mk.dtype(),
        .batch = 1,
        .m = m,
        .n = n,
        .k = k,
        .a = a_mk.raw(),
        .b = b_kn.raw(),
        .a_at = {k, 1, 0},
        .b_at = m == 1 ? MatrixAt{1, k, 0} : MatrixAt{n, 1, 0},  // one row is multiplied by weights, which are stored as [n k]
        .c = c_mn.raw(),
        .c_at = {n, 1, 0}};
  }
};

Ladder gemm_ladder(const LadderOptions& o, LadderKind kind) {
  const int64_t m = kind == LadderKind::gemm ? o.tokens : 1, n = 4 * o.width, k = o.width;
  Ladder ladder{kind, fmt::format("[{} {}] times [{} {}]", m, k, k, n), 2 * real(m * n) * real(k), real(m * k + k * n + m * n)};
  const auto add = [&](const char* file, Dtype dtype, auto* multiply) {
    const Product product(o, m, dtype);
    if constexpr (std::is_same_v<decltype(multiply(product.gemm())), bool>)
      if (!multiply(product.gemm())) return;
    ladder.rungs.push_back({file, dtype, [product, multiply] { multiply(product.gemm()); }});
  };
  ladder.rungs.push_back({kFirst, Dtype::f64, [p = Product(o, m, Dtype::f64)] { first_rungs::matrix_product(p.a_mk, p.b_kn); }});
  if (o.device != Device::cpu) {
    add("cuda/gemm/tiled.cu", Dtype::f32, gemm_tiled);
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
      if (o.device == Device::cuda) add("cuda/toolkit/cublas.cpp", dtype, gemm);
    return ladder;
  }
  add("cuda/gemm/blocked.h", Dtype::f32, gemm_blocked);
  add("cuda/gemm/few_rows.cpp", Dtype::f32, gemm_few_rows);
  return ladder;
}

Ladder shift_and_sum_ladder(const LadderOptions& o) {
  int64_t levels = 0, pairs = 0;  // pairs: of a position and one that it adds
  for (int64_t shift = 1; shift < o.tokens || levels == 0; shift *= 2) {
    pairs += std::max<int64_t>(o.tokens - shift, 0);
    ++levels;
  }
  const int64_t x = o.heads * levels;
  Ladder ladder{LadderKind::shift_and_sum,
      fmt::format("{} sequences of {}, width {}, heads: {}, levels: {}", kSequences, o.tokens, o.width, o.heads, levels),
      2 * real(kSequences * pairs) * real(o.width), real(kSequences * o.tokens) * real(2 * o.width + x)};
  const auto add = [&](const char* file, Dtype dtype, auto op) {
    const Tensor v_bcd = random(o, {kSequences, o.tokens, o.width}, 1, dtype), coef_bcx = random(o, {kSequences, o.tokens, x}, 2, dtype);
    ladder.rungs.push_back({file, dtype, [v_bcd, coef_bcx, op, heads = o.heads] { op(v_bcd, coef_bcx, heads); }});
  };
  const auto fused = [](auto* op) { return [op](const Tensor& v, const Tensor& coef, int64_t heads) { op(v, coef, {.heads = heads}); }; };
  add("ops/shift_and_sum/definition.cpp", Dtype::f32, fused(naive_shift_and_sum));
  add(kFirst, Dtype::f64, first_rungs::shift_and_sum);
  add(o.device == Device::cpu ? "ops/shift_and_sum/cpu.cpp" : "ops/shift_and_sum/gpu/forward.cu", Dtype::f32, fused(shift_and_sum));
  return ladder;
}

Ladder layer_norm_ladder(const LadderOptions& o) {
  const Shape rows{kSequences * o.tokens, o.width};
  Ladder ladder{LadderKind::layer_norm, fmt::format("x + branch and its norm, {} rows of {}", rows[0], rows[1]), 0, 4 * real(rows.size())};
  const auto add = [&](const char* file, Dtype dtype, auto op) {
    const Tensor x = random(o, rows, 1, dtype), branch = random(o, rows, 2, dtype), gain = random(o, {o.width}, 3, dtype);
    ladder.rungs.push_back({file, dtype, [=] { op(x, branch, gain, gain); }});
  };
  const auto fused = [](const Tensor& x, const Tensor& branch, const Tensor& gain, const Tensor& bias) {
    residual_layer_norm(x, branch, gain, bias);
  };
  add(kFirst, Dtype::f32, [](const Tensor& x, const Tensor& branch, const Tensor& gain, const Tensor& bias) {
    first_rungs::layer_norm(x + branch, gain, bias);
  });
  add("ops/rows/layer_norm.cu", Dtype::f32, fused);
  if (o.device != Device::cpu) add("ops/rows/layer_norm_pieces.cu", Dtype::bf16, fused);
  return ladder;
}

}  // namespace

Ladder ladder_of(LadderKind kind, const LadderOptions& options) {
  switch (kind) {
    case LadderKind::attention: return attention_ladder(options);
    case LadderKind::shift_and_sum: return shift_and_sum_ladder(options);
    case LadderKind::layer_norm: return layer_norm_ladder(options);
    default: return gemm_ladder(options, kind);
  }
}

}  // namespace ricci::apps
