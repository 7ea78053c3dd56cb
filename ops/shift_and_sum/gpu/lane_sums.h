// Each lane of a half-warp has 24 values, and each of them is summed over its 16 lanes. One shuffle serves two values: a lane keeps one of
// them and sends the other to the lane at `distance`, which does the opposite. So 24 sums take 24 shuffles and not 24 x 4. Both half-warps
// shuffle at once.
#pragma once
#include "cuda/seam.h"
#include "ops/shift_and_sum/problem.h"

namespace ricci::shift_and_sum_kernels {

template <class A> __device__ inline A merged(A of_lower, A of_upper, int distance) {
  const bool upper = threadIdx.x & static_cast<unsigned>(distance);
  return (upper ? of_upper : of_lower) + __shfl_xor_sync(~0u, upper ? of_lower : of_upper, distance);
}

// add() takes the values of a level at eight rows, from row 7 down to row 0. After that, sum(level) is the sum of the lane's row().
template <class A> struct LaneSums {
  A rows[kWalkLevels][kWalkRows];

  template <int u> __device__ void add(int level, A value) {
    A(&x)[kWalkRows] = rows[level];
    x[u] = value;
    if constexpr (u % 2 == 0) x[u] = merged(x[u], x[u + 1], 1);
    if constexpr (u % 4 == 0) x[u] = merged(x[u], x[u + 2], 2);
    if constexpr (u == 0) x[0] = merged(x[0], x[4], 4);
    if constexpr (u == 0) x[0] += __shfl_xor_sync(~0u, x[0], 8);
  }
  __device__ A sum(int level) const { return rows[level][0]; }
  __device__ static int row() { return static_cast<int>(threadIdx.x % kWalkRows); }
  // Two lanes have the sums of a row.
  __device__ static bool is_first() { return (threadIdx.x & 8) == 0; }
};

}  // namespace ricci::shift_and_sum_kernels
