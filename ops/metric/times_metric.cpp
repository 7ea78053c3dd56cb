// q = p M for every head. Attention with the scores p M p^T is then plain attention with the queries q and the keys p. It needs no kernel:
// the backward pass of attention gives dq and the keys' part of dp. With G = p^T dq, summed over positions:
//   dp = dq M,   dm_kk = G_kk,   dm_kk' = G_kk' + G_k'k  (k < k'),   and for a factor L with M = L L^T:  dL = (G + G^T) L
#include "autograd/record.h"
#include "cuda/gemm/gemm.h"
#include "ops/metric/metric.h"

namespace ricci {
namespace metric_kernels {

Tensor times_whole(const Tensor& p_bcd, const Tensor& m_nkk) {
  const int64_t k = m_nkk.shape()[1], d = p_bcd.shape()[2];
  const Tensor q_bcd = like(p_bcd);
  // clang-format off
  gemm({.device = p_bcd.device(), .dtype = p_bcd.dtype(), .batch = m_nkk.shape()[0], .m = p_bcd.shape()[0] * p_bcd.shape()[1],
        .n = k, .k = k, .a = p_bcd.raw(), .b = m_nkk.raw(), .a_at = {d, 1, k}, .b_at = {k, 1, k * k},
        .c = q_bcd.raw(), .c_at = {d, 1, k}});
  // clang-format on
  return q_bcd;
}

Tensor summed_outer_products(const Tensor& a_bcd, const Tensor& b_bcd, int64_t heads) {
  const int64_t d = a_bcd.shape()[2], k = d / heads;
  const Tensor g_nkk = like(a_bcd, {heads, k, k}, sums_of(a_bcd.dtype()));
  // clang-format off
  gemm({.device = a_bcd.device(), .dtype = a_bcd.dtype(), .batch = heads, .m = k, .n = k, .k = a_bcd.shape()[0] * a_bcd.shape()[1],
        .a = a_bcd.raw(), .b = b_bcd.raw(), .a_at = {1, d, k}, .b_at = {d, 1, k}, .c = g_nkk.raw(), .c_at = {k, 1, k * k},
        .c_f32 = a_bcd.dtype() == Dtype::bf16});
  // clang-format on
  return g_nkk;
}

}  // namespace metric_kernels

using namespace metric_kernels;

Tensor times_metric(const Arg& p_bcd, const Arg& m_nl, Triangle triangle) {
  const Extents n = check("times_metric", p_bcd, m_nl);
  const Tensor m_nkk = metric_of(m_nl.detached(), triangle, n.width, p_bcd.dtype());
  return record("times_metric", {p_bcd, m_nl}, times_whole(p_bcd.detached(), m_nkk), keep(p_bcd, m_nl, m_nkk, triangle),
      [](const Tensor& dq_bcd, const Tensor& p, const Tensor& m, const Tensor& whole, Triangle triangle) -> Grads {
        Tensor dp, dm_nl;
        if (wants_gradient(0)) dp = times_whole(dq_bcd, whole);
        if (wants_gradient(1)) dm_nl = packed_gradient(summed_outer_products(p, dq_bcd, m.shape()[0]), m, triangle, gradient_dtype(1));
        return {dp, dm_nl};
      });
}

}  // namespace ricci
