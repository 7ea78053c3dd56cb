// Shared by the ops on metrics, on the host. Everything is computed in the dtype that sums are held in: f32 for bf16.
#pragma once
#include "autograd/arg.h"
#include "ops/metric/metric.h"

namespace ricci::metric_kernels {

struct Extents {
  int64_t batches, positions, heads, width;
  int64_t d() const { return heads * width; }
  int64_t rows() const { return batches * positions; }
};
// Error: names the op, and what does not fit.
Extents check(const char* op, const Tensor& p_bcd, const Tensor& m_nl);

// Whole matrices of a packed triangle: M where it is the upper one, else L with zeros above its diagonal.
Tensor unpack(const Tensor& m_nl, Triangle triangle, int64_t width, Dtype dtype);
// M, also of a factor.
Tensor metric_of(const Tensor& m_nl, Triangle triangle, int64_t width, Dtype dtype);
// The packed upper triangle of M, whatever is stored.
Tensor upper_triangle(const Tensor& m_nl, Triangle triangle, int64_t width, Dtype dtype);
// The gradient of the packed entries, given G_nkK = dL/dM as if all its entries were independent:
//   dm_kk = G_kk,  dm_kk' = G_kk' + G_k'k for k < k';  of a factor dL = (G + G^T) L, its lower triangle
Tensor packed_gradient(const Tensor& g_nkk, const Tensor& m_nl, Triangle triangle, Dtype dtype);
// p_bcd M, M whole and of the dtype of p.
Tensor times_whole(const Tensor& p_bcd, const Tensor& m_nkk);
// G_nkK = sum over positions of a_bcnk b_bcnK, of one dtype, in the dtype of sums.
Tensor summed_outer_products(const Tensor& a_bcd, const Tensor& b_bcd, int64_t heads);

}  // namespace ricci::metric_kernels
