#include "cuda/gemm/gemm.h"

#include <utility>

#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/gemm/backends.h"
#include "cuda/trace.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {
namespace {

void check(const Gemm& g) {
  if (g.dtype == Dtype::i64) fail("gemm: expected f32, f64 or bf16, got {}", {name_of(g.dtype)});
  if (g.c_f32 && g.dtype != Dtype::bf16) fail("gemm: c_f32 is for bf16, not for {}", {name_of(g.dtype)});
  if (g.batch < 0 || g.m < 0 || g.n < 0 || g.k < 0) fail("gemm: negative extent in batch {} m {} n {} k {}", {g.batch, g.m, g.n, g.k});
  require(g.device);
}

void check_epilogue(const Gemm& g) {
  if (g.epilogue == Epilogue::gelu && !g.bias_n) fail("gemm: gelu needs a bias");
  if (g.epilogue == Epilogue::row_sums || g.epilogue == Epilogue::gelu_gradient) {
    if (g.bias_n) fail("gemm: this epilogue takes no bias");
    if (!g.beside) fail("gemm: this epilogue needs memory beside c");
  }
}

// An extent of 1 has no meaningful stride: we set the dense one, so that fast paths apply.
void make_dense(MatrixAt& strides, int64_t rows, int64_t columns) {
  if (columns == 1) strides.column_stride = rows > 1 && strides.row_stride == 1 ? rows : 1;
  if (rows == 1) strides.row_stride = strides.column_stride == 1 ? columns : 1;
}

MatrixAt flipped(const MatrixAt& strides) { return {strides.column_stride, strides.row_stride, strides.batch_stride}; }

// c^T = b^T a^T
Gemm transposed(const Gemm& g) {
  Gemm t = g;
  std::swap(t.m, t.n);
  std::swap(t.a, t.b);
  t.a_at = flipped(g.b_at);
  t.b_at = flipped(g.a_at);
  t.c_at = flipped(g.c_at);
  return t;
}

void gemm_on_cpu(const Gemm& g) {
  if (!gemm_few_rows(g) && (g.bias_n || !gemm_few_rows(transposed(g)))) gemm_blocked(g);
}

void gemm_on_cuda(const Gemm& g) {
#ifdef RICCI_HAS_CUDA
  if (g.k > 0 && gemm_cublas(g)) return;
#endif
  gemm_tiled(g);
}

void count_flops(const Gemm& g) { trace::flops(2.0 * static_cast<double>(g.batch * g.m * g.n) * static_cast<double>(g.k), g.dtype); }

Gemm made_dense(Gemm g) {
  make_dense(g.a_at, g.m, g.k);
  make_dense(g.b_at, g.k, g.n);
  make_dense(g.c_at, g.m, g.n);
  return g;
}

}  // namespace

void gemm(const Gemm& asked) {
  check(asked);
  if (asked.epilogue != Epilogue::none) fail("gemm: only gemm_fused has epilogues");
  if (asked.batch == 0 || asked.m == 0 || asked.n == 0) return;
  count_flops(asked);
  Gemm g = made_dense(asked);
  if (g.c_at.column_stride != 1 && g.c_at.row_stride == 1 && !g.bias_n) g = transposed(g);
  switch (g.device) {
    case Device::cpu: return gemm_on_cpu(g);
    case Device::cuda: return gemm_on_cuda(g);
    case Device::cuda_emulated: return gemm_tiled(g);
  }
}

bool gemm_fused([[maybe_unused]] const Gemm& g) {
  check(g);
  check_epilogue(g);
#ifdef RICCI_HAS_CUDA
  if (g.device != Device::cuda || g.batch != 1 || g.m == 0 || g.n == 0 || g.k == 0 || !gemm_cublas(made_dense(g))) return false;
  count_flops(g);
  return true;
#else
  return false;
#endif
}

Tensor gemm_with_row_sums(const Gemm& g, const Tensor& a_km, Dtype dtype) {
  const bool same_type = dtype == (g.c_f32 ? Dtype::f32 : g.dtype);
  if (g.device == Device::cuda && same_type) {
    const Tensor sums_m({g.m}, dtype, g.device);
    Gemm fused = g;
    fused.epilogue = Epilogue::row_sums;
    fused.beside = sums_m.raw();
    if (gemm_fused(fused)) return sums_m;
  }
  gemm(g);
  return sum_to(a_km, {g.m}, dtype);
}

}  // namespace ricci
