// Metric tensors of attention: scores p M p^T instead of q k^T. A metric M_n is a symmetric k x k matrix for each head n. Only a packed
// triangle m_nl with l = 0 .. k (k + 1) / 2 - 1 is stored and trained, so M stays symmetric. The stored triangle is the upper triangle of
// M, or the lower triangle of a factor L with M = L L^T; in the second case M is also positive semi-definite. p_bcd are projections, with k
// adjacent columns for each head.
//   times_metric.cpp   p M, which turns attention with a metric into attention: q = p M, keys p
//   scores.cu          the scores p M p^T themselves, summed over the packed entries
//   unpack.cu          conversions between packed and full matrices
#pragma once
#include "autograd/arg.h"
#include "core/dtype.h"

namespace ricci {

// ---- Packed triangles: a triangle of a k x k matrix, stored row by row without the other triangle
enum class Triangle : uint8_t {
  upper,  // a symmetric matrix M: M_ij = M_ji for i <= j
  lower,  // a factor L of M = L L^T: L_ij for i >= j
};

HD int64_t packed_size(int64_t k) { return k * (k + 1) / 2; }
// Returns the width k of a triangle with this number of entries, or -1 if none exists.
inline int64_t packed_width(int64_t entries) {
  int64_t k = 0;
  while (packed_size(k) < entries) ++k;
  return packed_size(k) == entries ? k : -1;
}
HD int64_t packed_upper(int64_t i, int64_t j, int64_t k) { return i * k - i * (i - 1) / 2 + (j - i); }  // i <= j
HD int64_t packed_lower(int64_t i, int64_t j) { return i * (i + 1) / 2 + j; }                           // i >= j
HD bool in_triangle(Triangle triangle, int64_t i, int64_t j) { return triangle == Triangle::upper ? i <= j : i >= j; }
HD int64_t packed_at(Triangle triangle, int64_t i, int64_t j, int64_t k) {
  return triangle == Triangle::upper ? packed_upper(i, j, k) : packed_lower(i, j);
}

// ---- Ops
// q_bcd = p M_n in the columns of head n.
// Errors: the number of entries is not triangular, the heads do not fill the columns of p, the dtypes or devices differ.
Tensor times_metric(const Arg& p_bcd, const Arg& m_nl, Triangle triangle);

// r_bncC = sum over k, k' of M_kk' p_ck p_Ck', for every pair of positions c and C: the packed form of MetaFormer's kernel with corrected
// factors. The tests compare times_metric with it. Errors: as for times_metric.
Tensor metric_scores(const Arg& p_bcd, const Arg& m_nl, Triangle triangle);

// The full matrices M_nkK [n k k] of a metric. Not recorded. Error: the number of entries is not triangular.
Tensor whole_metric(const Tensor& m_nl, Triangle triangle);

// ---- Shared by the ops, on the host. Computed in the accumulator's dtype: f32 for bf16.
namespace metric_kernels {

struct Extents {
  int64_t batches, positions, heads, width;
  int64_t d() const { return heads * width; }
};
Extents check(const char* op, const Tensor& p_bcd, const Tensor& m_nl);

// The full matrices of a packed triangle: M for an upper triangle, else L with zeros above its diagonal.
Tensor unpack(const Tensor& m_nl, Triangle triangle, int64_t width, Dtype dtype);
// The full M, even if its factor L is given.
Tensor metric_of(const Tensor& m_nl, Triangle triangle, int64_t width, Dtype dtype);
// The packed upper triangle of M, also for a factor L.
Tensor upper_triangle(const Tensor& m_nl, Triangle triangle, int64_t width, Dtype dtype);
// The gradient of the packed entries, given G_nkK = dL/dM as if all its entries were independent:
//   dm_kk = G_kk,  dm_kk' = G_kk' + G_k'k for k < k';  for a factor dL = (G + G^T) L, its lower triangle
Tensor packed_gradient(const Tensor& g_nkk, const Tensor& m_nl, Triangle triangle, Dtype dtype);
// p_bcd M, with a full M of the dtype of p.
Tensor times_whole(const Tensor& p_bcd, const Tensor& m_nkk);
// G_nkK = sum over positions of a_bcnk b_bcnK, both of the same dtype, in the accumulator's dtype.
Tensor summed_outer_products(const Tensor& a_bcd, const Tensor& b_bcd, int64_t heads);

}  // namespace metric_kernels
}  // namespace ricci
