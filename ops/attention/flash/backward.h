// The tensors of the gradient kernels of flash attention, and their launches. With the weights p of the forward, the
// factors m of dropout (1 without) and the scale z of the scores:
//   p_tj = 2^((z q_t . k_j - lse_t) log2(e)),   ds_tj = p_tj (m_tj dy_t . v_j - delta_t),   delta_t = dy_t . y_t
//   dv_j = sum_t m_tj p_tj dy_t,   dk_j = z sum_t ds_tj q_t,   dq_t = z sum_j ds_tj k_j
#pragma once
#include "ops/attention/flash/mask.h"

namespace ricci::attention_kernels::flash {

// The gradients of views that are the same columns stand in the same place, where they are added up: dk and dv before they are
// stored, dq to what has been stored.
struct BackwardTensors {
  Problem problem;
  Bounds bounds;
  HeadRows<const bf16> q, k, v, dy;
  const float *lse, *delta;  // [b, heads, c]
  HeadRows<bf16> dq, dk, dv;
};

// dk and dv, then dq, of problems that flash_fits.
void key_gradient(const BackwardTensors& of, Device device);
void query_gradient(const BackwardTensors& of, Device device);

}  // namespace ricci::attention_kernels::flash
