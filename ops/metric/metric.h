// Metric tensors of attention. A metric is a symmetric k x k matrix M_n for every head n, stored as a packed
// triangle m_nl, l = 0 .. k (k + 1) / 2 - 1: its own upper triangle, or the lower triangle of a factor L with
// M = L L^T, which makes it positive semi-definite. p_bcd are projections, of every head k neighbouring columns.
//   times_metric.cpp   p M, by which attention with a metric becomes attention: q = p M, keys p
//   scores.cu          the scores p M p^T themselves, summed over the packed entries
//   unpack.cu          between packed and whole matrices
#pragma once
#include "autograd/arg.h"
#include "core/host_device.h"

namespace ricci {

// ---- Packed triangles: the place of an entry of a triangle of a k x k matrix that is stored row by row without the other triangle
enum class Triangle : uint8_t {
  upper,  // a symmetric matrix M: M_ij = M_ji for i <= j
  lower,  // a factor L of M = L L^T: L_ij for i >= j
};

HD int64_t packed_size(int64_t k) { return k * (k + 1) / 2; }
// The k whose triangle has this number of entries; -1 if there is none.
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
// q_bcd with q = p M_n in the columns of head n.
// Errors: a number of entries that is no triangle's; columns of p that are not the heads' columns; another dtype or device.
Tensor times_metric(const Arg& p_bcd, const Arg& m_nl, Triangle triangle);

// r_bncC = sum over k, k' of M_kk' p_ck p_Ck', for every pair of positions c and C, in the packed form of MetaFormer's kernel with
// its factors corrected: what the above is tested against, and what tables of scores are made of. Errors: as for
// times_metric.
Tensor metric_scores(const Arg& p_bcd, const Arg& m_nl, Triangle triangle);

// The whole matrices M_nkK [n k k] of a metric. Not recorded. Error: a number of entries that is no triangle's.
Tensor whole_metric(const Tensor& m_nl, Triangle triangle);

}  // namespace ricci
