// The sums over the 32 lanes of a warp of 24 values of each lane, all together. Two values are added with one shuffle: the lanes whose
// number has the bit `distance` go on with the one, the others with the other. So 24 sums take 31 shuffles and not 24 x 5.
#pragma once
#include "cuda/seam.h"

namespace ricci::shift_and_sum_kernels {

template <class A> __device__ inline A merged(A of_lower, A of_upper, int distance) {
  const bool upper = threadIdx.x & static_cast<unsigned>(distance);
  return (upper ? of_upper : of_lower) + __shfl_xor_sync(~0u, upper ? of_lower : of_upper, distance);
}

// Takes the values of three levels at eight rows, from row 7 down to row 0. Then sum() of a lane is the sum of its row() and level().
template <class A> struct LaneSums {
  A rows[8];

  template <int u> __device__ void add(A level0, A level1, A level2) {
    const A halves = merged(level0, level2, 16);
    rows[u] = merged(halves, level1 + __shfl_xor_sync(~0u, level1, 16), 8);
    if constexpr (u % 2 == 0) rows[u] = merged(rows[u], rows[u + 1], 1);
    if constexpr (u % 4 == 0) rows[u] = merged(rows[u], rows[u + 2], 2);
    if constexpr (u == 0) rows[0] = merged(rows[0], rows[4], 4);
  }
  __device__ A sum() const { return rows[0]; }
  __device__ static int row() { return static_cast<int>(threadIdx.x % 8); }
  __device__ static int level() {
    const bool of_level_1 = threadIdx.x & 8, upper = threadIdx.x & 16;
    const int outer = upper ? 2 : 0;
    return of_level_1 ? 1 : outer;
  }
  // Two lanes have the sums of level 1.
  __device__ static bool is_first() { return threadIdx.x % 32 < 24; }
};

}  // namespace ricci::shift_and_sum_kernels
