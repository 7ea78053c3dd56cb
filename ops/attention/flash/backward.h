// The tensors of the gradient kernels of flash attention, and their launches. The kernels compute the weights p again instead of storing c
// x C numbers. With the factors m of dropout (1 without dropout) and the factor z of the scores:
//   p_tj = 2^((z q_t . k_j - lse_t) log2(e)),   ds_tj = p_tj (m_tj dy_t . v_j - delta_t),   delta_t = dy_t . y_t
//   dv_j = sum_t m_tj p_tj dy_t,   dk_j = z sum_t ds_tj q_t,   dq_t = z sum_j ds_tj k_j
// The exact exponent is at most 0. For large scores, the computed exponent can be above 0: lse is rounded, and at 1e8 it is off by more
// than 10.
#pragma once
#include "cuda/math.h"
#include "ops/attention/flash/mask.h"

namespace ricci::attention_kernels::flash {

// The gradients of equal slices share one buffer: dk and dv are added before they are stored, and dq is then added to the stored sum.
struct BackwardTensors {
  Problem problem;
  Bounds bounds;
  float z;  // score_scale log2(e)
  HeadRows<const bf16> q, k, v, dy;
  const float *lse, *delta;  // [b, heads, c]
  HeadRows<bf16> dq, dk, dv;
};

// Compute dk and dv, and dq. The first two functions need flash_fits, the other two also wgmma_takes.
void key_gradient(const BackwardTensors& tensors, Device device);
void query_gradient(const BackwardTensors& tensors, Device device);
void wgmma_key_gradient(const BackwardTensors& tensors, Device device);
void wgmma_query_gradient(const BackwardTensors& tensors, Device device);

// ---- scores of the dk and dv kernels: rows are keys, columns are queries

// Replaces scores by p; lse has one number for each query.
template <int kTiles, int kPartTiles>
__device__ inline void weigh_keys(const BackwardTensors& tensors, const float* lse, float (&p)[kTiles][kPartTiles][4]) {
  UNROLL(16)
  for (int x = 0; x < kPartTiles; ++x) {
    const float2 of_queries = *reinterpret_cast<const float2*>(lse + 8 * x + lane_column());
    const float shift[2] = {-kLog2E * of_queries.x, -kLog2E * of_queries.y};
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i)
      for (int e = 0; e < 4; ++e) p[i][x][e] = ptx::exp2_approx(smaller(math::fma(p[i][x][e], tensors.z, shift[e % 2]), 0));
  }
}

template <int kTiles, int kPartTiles>
__device__ inline void hide_queries(const Visible& visible, int t0, int j0, float (&p)[kTiles][kPartTiles][4]) {
  const Bounds& bounds = visible.bounds;
  const int j = j0 + lane_row(), far = bounds.cell * j - t0;
  UNROLL(4)
  for (int i = 0; i < kTiles; ++i)
    for (int half = 0; half < 2; ++half) {
      const int row = 16 * i + 8 * half, first = far + bounds.cell * row;
      hide_outside(p, i, half, 1, first + bounds.least, j < visible.keys - row ? first + bounds.most : 0, 0.0f);
    }
}

// Replaces v . dy by ds, and multiplies p by the factors of dropout: element e of tile [i][x] stays if bit e of kept(i, x) is set. If both
// gradients are added (in_sum), ds includes the factor z.
template <bool dropping, bool in_sum, int kTiles, int kPartTiles, class KeptOfTile>
__device__ inline void differentiate_keys(const BackwardTensors& tensors, KeptOfTile kept, const float* delta,
    float (&p)[kTiles][kPartTiles][4], float (&ds)[kTiles][kPartTiles][4]) {
  const float scale = static_cast<float>(tensors.problem.dropout.keep_factor),
              of_sum = in_sum ? static_cast<float>(tensors.problem.score_scale) : 1.0f;
  UNROLL(16)
  for (int x = 0; x < kPartTiles; ++x) {
    const float2 of_queries = *reinterpret_cast<const float2*>(delta + 8 * x + lane_column());
    const float subtracted[2] = {of_queries.x, of_queries.y};
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i) {
      const unsigned bits = dropping ? kept(i, x) : 0;
      for (int e = 0; e < 4; ++e) {
        const float kept_scale = bits >> e & 1 ? scale : 0.0f, factor = dropping ? kept_scale : 1.0f;
        ds[i][x][e] = p[i][x][e] * (ds[i][x][e] * factor - subtracted[e % 2]) * of_sum;
        p[i][x][e] *= factor;
      }
    }
  }
}

// ---- scores of the dq kernels: rows are queries, from t on

template <int kTiles> struct QuerySums {
  float lse[kTiles][2], delta[kTiles][2];  // lse times log2(e)

  // For queries after the last, lse and delta are 0, so p = 1 and ds = 0.
  __device__ QuerySums(const BackwardTensors& tensors, int head, int t0) {
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i)
      for (int half = 0; half < 2; ++half) {
        const int t = t0 + 16 * i + 8 * half + lane_row();
        const int index = head * tensors.bounds.queries + t;
        lse[i][half] = t < tensors.bounds.queries ? tensors.lse[index] * kLog2E : 0.0f;
        delta[i][half] = t < tensors.bounds.queries ? tensors.delta[index] : 0.0f;
      }
  }

  // Replaces scores by p; z is score_scale log2(e).
  template <int kPartTiles> __device__ void weigh(float z, float (&p)[kTiles][kPartTiles][4]) const {
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i) UNROLL(16)
    for (int x = 0; x < kPartTiles; ++x)
      for (int e = 0; e < 4; ++e) p[i][x][e] = ptx::exp2_approx(smaller(math::fma(p[i][x][e], z, -lse[i][e / 2]), 0));
  }

  // Replaces dy . v by ds; `kept` is as in differentiate_keys.
  template <bool dropping, int kPartTiles, class KeptOfTile>
  __device__ void differentiate(
      const BackwardTensors& tensors, KeptOfTile kept, const float (&p)[kTiles][kPartTiles][4], float (&ds)[kTiles][kPartTiles][4]) const {
    const float scale = static_cast<float>(tensors.problem.dropout.keep_factor);
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i) UNROLL(16)
    for (int x = 0; x < kPartTiles; ++x) {
      const unsigned bits = dropping ? kept(i, x) : 0;
      for (int e = 0; e < 4; ++e) {
        if (dropping) ds[i][x][e] = bits >> e & 1 ? ds[i][x][e] * scale : 0.0f;
        ds[i][x][e] = p[i][x][e] * (ds[i][x][e] - delta[i][e / 2]);
      }
    }
  }
};

}  // namespace ricci::attention_kernels::flash
