// Conversions between packed triangles m_nl, for the optimizer, and full matrices M_nkK, for products:
//   unpack   M_kk' = M_k'k = m_l,  or L_kk' = l_l below the diagonal and 0 above
//   pack     dm_l = G_kk on the diagonal, G_kk' + G_k'k elsewhere;  dl_l = dL_kk'
//   bytes    2 s n k^2, and half of it packed, for n matrices with elements of s bytes
#include "core/dims.h"
#include "core/error.h"
#include "cuda/gemm/gemm.h"
#include "cuda/verbs/arithmetic.h"
#include "cuda/verbs/elements.h"
#include "ops/metric/metric.h"

namespace ricci {
namespace metric_kernels {

// Element i of all full matrices.
struct Entry {
  int64_t head, row, column;
  HD Entry(int64_t i, int64_t width) : head(i / width / width), row(i / width % width), column(i % width) {}
};

template <class T> struct Unpack {
  const T* m;
  T* whole;
  int64_t width;
  Triangle triangle;
  HD void operator()(int64_t i) const {
    const Entry e(i, width);
    const bool stored = in_triangle(triangle, e.row, e.column);
    const int64_t index = stored ? packed_at(triangle, e.row, e.column, width) : packed_at(triangle, e.column, e.row, width);
    if (stored || triangle == Triangle::upper) whole[i] = m[e.head * packed_size(width) + index];
    else whole[i] = T(0);
  }
};

template <class T> struct Pack {
  const T* whole;
  T* m;
  int64_t width;
  Triangle triangle;
  bool add_mirrored;  // adds the entry on the other side of the diagonal
  HD void operator()(int64_t i) const {
    const Entry e(i, width);
    if (!in_triangle(triangle, e.row, e.column)) return;
    const T mirrored = add_mirrored && e.row != e.column ? whole[(e.head * width + e.column) * width + e.row] : T(0);
    m[e.head * packed_size(width) + packed_at(triangle, e.row, e.column, width)] = whole[i] + mirrored;
  }
};

// Returns the width of a metric. Error: the number of entries is not triangular.
HOST int64_t checked_width(const char* op, const Tensor& m_nl) {
  const int64_t entries = m_nl.shape()[1], width = packed_width(entries);
  if (width < 0) fail("{}: there are {} entries per head in m_nl{}, expected a triangular number", {op, entries, show(m_nl.shape())});
  return width;
}

HOST Extents check(const char* op, const Tensor& p_bcd, const Tensor& m_nl) {
  Dims n;
  n.bind(op, "p_bcd, m_nl", {p_bcd, m_nl});
  const int64_t width = checked_width(op, m_nl);
  if (n['n'] * width != n['d'])
    fail("{}: m_nl{} is a metric of {} heads of width {}, expected heads that fill all columns of p_bcd{} ({})",
        {op, show(m_nl.shape()), n['n'], width, show(p_bcd.shape()), n['d']});
  return {n['b'], n['c'], n['n'], width};
}

HOST Tensor unpack(const Tensor& m_nl, Triangle triangle, int64_t width, Dtype dtype) {
  const Tensor m = convert(m_nl, dtype), whole_nkk = like(m, {m.shape()[0], width, width});
  with_dtype(m, [&]<class T>(T) {
    for_each_element("unpack_metric", m.device(), whole_nkk.size(), Unpack<T>{m.data<T>(), whole_nkk.data<T>(), width, triangle});
  });
  return whole_nkk;
}

// c_n = a_n b_n for matrices [n k k]; a and b can be transposed.
HOST Tensor product_of_matrices(const Tensor& a_nkk, bool transpose_a, const Tensor& b_nkk, bool transpose_b) {
  const int64_t k = a_nkk.shape()[1];
  const Tensor c_nkk = like(a_nkk);
  const auto strides = [k](bool transposed) { return MatrixAt{transposed ? 1 : k, transposed ? k : 1, k * k}; };
  // clang-format off
  gemm({.device = a_nkk.device(), .dtype = a_nkk.dtype(), .batch = a_nkk.shape()[0], .m = k, .n = k, .k = k,
        .a = a_nkk.raw(), .b = b_nkk.raw(), .a_at = strides(transpose_a), .b_at = strides(transpose_b),
        .c = c_nkk.raw(), .c_at = strides(false)});
  // clang-format on
  return c_nkk;
}

HOST Tensor metric_of(const Tensor& m_nl, Triangle triangle, int64_t width, Dtype dtype) {
  if (triangle == Triangle::upper) return unpack(m_nl, triangle, width, dtype);
  const Tensor l_nkk = unpack(m_nl, triangle, width, sums_of(m_nl.dtype()));
  return convert(product_of_matrices(l_nkk, false, l_nkk, true), dtype);
}

// Full matrices are f32 or f64: entries are added up before they are rounded.
HOST Tensor pack(const Tensor& whole_nkk, Triangle triangle, bool add_mirrored) {
  const int64_t width = whole_nkk.shape()[1];
  const Tensor m_nl = like(whole_nkk, {whole_nkk.shape()[0], packed_size(width)});
  with_dtype(whole_nkk, [&]<class T>(T) {
    if constexpr (dtype_of<T> == Dtype::bf16) fail("pack_metric: the matrices are bf16, expected f32 or f64");
    else
      for_each_element(
          "pack_metric", m_nl.device(), whole_nkk.size(), Pack<T>{whole_nkk.data<T>(), m_nl.data<T>(), width, triangle, add_mirrored});
  });
  return m_nl;
}

HOST Tensor upper_triangle(const Tensor& m_nl, Triangle triangle, int64_t width, Dtype dtype) {
  return triangle == Triangle::upper ? convert(m_nl, dtype) : pack(metric_of(m_nl, triangle, width, dtype), Triangle::upper, false);
}

HOST Tensor packed_gradient(const Tensor& g_nkk, const Tensor& m_nl, Triangle triangle, Dtype dtype) {
  const int64_t width = g_nkk.shape()[1];
  Tensor of_entries = g_nkk;
  if (triangle == Triangle::lower) {
    const Tensor l_nkk = unpack(m_nl, triangle, width, g_nkk.dtype());
    of_entries = product_of_matrices(g_nkk, false, l_nkk, false);
    add_to(of_entries, product_of_matrices(g_nkk, true, l_nkk, false));
  }
  return convert(pack(of_entries, triangle, triangle == Triangle::upper), dtype);
}

}  // namespace metric_kernels

using namespace metric_kernels;

HOST Tensor whole_metric(const Tensor& m_nl, Triangle triangle) {
  DIMS(m_nl);
  return metric_of(m_nl.detached(), triangle, checked_width("whole_metric", m_nl), m_nl.dtype());
}

CUDA_ELEMENT(Unpack<float>);
CUDA_ELEMENT(Unpack<double>);
CUDA_ELEMENT(Unpack<bf16>);
CUDA_ELEMENT(Pack<float>);
CUDA_ELEMENT(Pack<double>);

}  // namespace ricci
