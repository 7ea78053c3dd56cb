// The running softmax of the forward pass, and the last steps of a block (formulas in forward.cu).
#pragma once
#include "cuda/math.h"
#include "cuda/verbs/reduce.h"
#include "ops/attention/flash/mask.h"

namespace ricci::attention_kernels::flash {

// A warp's state after the keys processed so far, for kTiles x 16 queries and 8 kPartTiles keys at a time.
template <int kTiles, int kPartTiles, int kWidth> struct Softmax {
  static constexpr float kLowest = -__builtin_huge_valf(), kSlack = 8;
  using Scores = float[kTiles][kPartTiles][4];

  float m[kTiles][2], l[kTiles][2], o[kTiles][kWidth / 8][4];  // l is the sum over this lane's columns

  __device__ Softmax() {
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i)
      for (int half = 0; half < 2; ++half) {
        m[i][half] = kLowest;
        l[i][half] = 0;
      }
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i) UNROLL(16)
    for (int x = 0; x < kWidth / 8; ++x)
      for (int e = 0; e < 4; ++e) o[i][x][e] = 0;
  }

  // Replaces scores by p and updates the state; `z` is as in forward.cu. The result does not depend on m as long as p stays within range.
  // Setting m to the maximum requires multiplying all of o, so m changes only if p would exceed 2^kSlack. This is rare after the first
  // keys.
  __device__ void weigh(Scores& s, float z) {
    float largest[kTiles][2];
    bool far = false;
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i)
      for (int half = 0; half < 2; ++half) {
        largest[i][half] = row_largest(s, i, half, m[i][half]);
        far = far || (largest[i][half] - m[i][half]) * z > kSlack;
      }
    if (__any_sync(~0u, far)) rescale(largest, z);
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i) UNROLL(2)
    for (int half = 0; half < 2; ++half) {
      const float shift = m[i][half] > kLowest ? m[i][half] * z : 0.0f;
      float sum = 0;
      UNROLL(16)
      for (int j = 0; j < kPartTiles; ++j)
        for (int e = 2 * half; e < 2 * half + 2; ++e) sum += s[i][j][e] = ptx::exp2_approx(math::fma(s[i][j][e], z, -shift));
      l[i][half] += sum;
    }
  }

  // Sets dropped weights to 0. The weights that stay are not divided by 1 - p here: finish divides their sum once. The first query is t,
  // the first key j0.
  __device__ static void drop(const Problem& problem, int head, int t, int j0, Scores& p) {
    const Kept kept(problem, head);
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i) UNROLL(16)
    for (int x = 0; x < kPartTiles; ++x) {
      const unsigned bits = kept.of_queries(t + 16 * i, j0 + 8 * x);
      for (int e = 0; e < 4; ++e) p[i][x][e] = bits >> e & 1 ? p[i][x][e] : 0.0f;
    }
  }

  // Stores y and lse of the warp's queries t .. t + rows - 1, through the rows of a tile that belong to the warp. A query that sees no key
  // has l = 0: its output is 0, and its infinite lse gives p = 0 in the backward pass.
  __device__ void finish(
      const Problem& problem, const HeadRows<bf16>& y, float* lse, int head, int t, int rows, const Tile<kWidth>& by, int row) {
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i)
      for (int half = 0; half < 2; ++half) {
        const int r = 16 * i + 8 * half + lane_row();
        float& sum = l[i][half];
        sum = row_reduce(sum, Sum{});
        if (lane_column() == 0 && r < rows)
          lse[r] = sum == 0 ? -kLowest : m[i][half] * static_cast<float>(problem.score_scale) + math::log(sum);
        sum = sum == 0 ? 0.0f : static_cast<float>(problem.dropout.keep_factor) / sum;
      }
    store_rows<kTiles, kWidth>(
        o, [&](int i, int half) { return l[i][half]; }, by, row, row_of(y, chunk_of(y, problem, head), t), static_cast<int>(y.row), rows);
  }

 private:
  __device__ static float row_largest(const Scores& s, int i, int half, float largest) {
    UNROLL(16)
    for (int j = 0; j < kPartTiles; ++j) largest = larger(larger(s[i][j][2 * half], s[i][j][2 * half + 1]), largest);
    return row_reduce(largest, [](float a, float b) { return larger(a, b); });
  }

  __device__ void rescale(const float (&largest)[kTiles][2], float z) {
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i)
      for (int half = 0; half < 2; ++half) {
        const float factor = m[i][half] > kLowest ? ptx::exp2_approx((m[i][half] - largest[i][half]) * z) : 0.0f;
        m[i][half] = largest[i][half];
        l[i][half] *= factor;
        UNROLL(16)
        for (int x = 0; x < kWidth / 8; ++x) {
          o[i][x][2 * half] *= factor;
          o[i][x][2 * half + 1] *= factor;
        }
      }
  }
};

}  // namespace ricci::attention_kernels::flash
