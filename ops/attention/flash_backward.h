// What the gradient kernels of flash attention read, and their launches. With the weights p of the forward, and m the factors
// of dropout (1 without):
//   p_ts = 2^((q_t . k_s / sqrt(k) - lse_t) log2(e)),   ds_ts = p_ts (m_ts dy_t . v_s - delta_t),   delta_t = dy_t . y_t
//   dv_s = sum_t m_ts p_ts dy_t,   dk_s = sum_t ds_ts q_t / sqrt(k),   dq_t = sum_s ds_ts k_s / sqrt(k)
#pragma once
#include "ops/attention/flash_mask.h"

namespace ricci::attention_kernels::flash {

struct BackwardInputs {
  Problem problem;
  Bounds bounds;
  const bf16 *dy, *qkv;
  const float *lse, *delta;  // [b, heads, c]
};

// dk and dv, dq of all heads, written into their places in dqkv; problems that flash_fits.
void key_gradient(const BackwardInputs& in, const Tensor& dqkv);
void query_gradient(const BackwardInputs& in, const Tensor& dqkv);

}  // namespace ricci::attention_kernels::flash
