// Checks a product and chooses the implementation (backends.h): on the CPU few_rows or blocked, on cuda cuBLASLt or, if cuBLASLt cannot
// compute the product, our own tiled kernel. If the rows of c are contiguous instead of its columns, c^T = b^T a^T is computed, so
// implementations need to write only rows.
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
  if (g.batch < 0 || g.m < 0 || g.n < 0 || g.k < 0) fail("gemm: an extent is negative: batch {} m {} n {} k {}", {g.batch, g.m, g.n, g.k});
  require(g.device);
}

// An extent of 1 has no meaningful stride. It gets the dense stride, as the fast paths require.
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

Matrix::Matrix(const Tensor& t) : elements(t), rows(1), columns(t.shape()[-1]), strides{columns, 1, 0} {
  for (int d = 0; d + 1 < t.shape().rank(); ++d) rows *= t.shape()[d];
}

Matrix Matrix::transposed() const {
  Matrix t = *this;
  std::swap(t.rows, t.columns);
  t.strides = flipped(strides);
  return t;
}

Gemm product(const Matrix& c_mn, const Matrix& a_mk, const Matrix& b_kn, const Tensor& bias_n) {
  const Tensor &a = a_mk.elements, &c = c_mn.elements;
  // clang-format off
  return {.device = a.device(), .dtype = a.dtype(), .batch = 1, .m = a_mk.rows, .n = b_kn.columns, .k = a_mk.columns, .a = a.raw(),
          .b = b_kn.elements.raw(), .a_at = a_mk.strides, .b_at = b_kn.strides, .c = c.raw(), .c_at = c_mn.strides, .bias_n = bias_n.raw(),
          .c_f32 = c.dtype() != a.dtype()};
  // clang-format on
}

void gemm(const Gemm& asked) {
  check(asked);
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

Tensor gemm_with_row_sums(const Gemm& g, const Tensor& a_km, Dtype dtype) {
#ifdef RICCI_HAS_CUDA
  const bool same_type = dtype == (g.c_f32 ? Dtype::f32 : g.dtype);
  if (g.device == Device::cuda && same_type && g.m > 0 && g.n > 0 && g.k > 0) {
    check(g);
    const Tensor sums_m({g.m}, dtype, g.device);
    Gemm with_sums = made_dense(g);
    with_sums.row_sums_m = sums_m.raw();
    if (gemm_cublas(with_sums)) {
      count_flops(g);
      return sums_m;
    }
  }
#endif
  gemm(g);
  return sum_to(a_km, {g.m}, dtype);
}

}  // namespace ricci
