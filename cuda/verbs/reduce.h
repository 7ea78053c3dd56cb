// Sums and maxima over the threads of a warp or a block. The order is fixed, so the results are bitwise identical in every run.
#pragma once
#include "cuda/seam.h"

namespace ricci {

struct Sum {
  template <class T> HD T operator()(T a, T b) const { return a + b; }
};
struct Max {
  template <class T> HD T operator()(T a, T b) const { return a > b || a != a ? a : b; }  // a NaN stays
};

// Every lane gets the reduction of the 32 lanes' values by op.
template <class T, class Op> __device__ inline T warp_reduce(T value, Op op) {
  for (int distance = 16; distance > 0; distance /= 2) value = op(value, __shfl_xor_sync(~0u, value, distance));
  return value;
}

// Every thread of the block gets the reduction of all threads' values. The block must have a multiple of 32 threads.
template <class T, class Op> __device__ inline T block_reduce(T value, Op op, T identity) {
  SHARED(T, of_warp, [32]);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  value = warp_reduce(value, op);
  __syncthreads();  // all threads have read the values of an earlier reduction
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  return warp_reduce(lane < warps ? of_warp[lane] : identity, op);
}

}  // namespace ricci
