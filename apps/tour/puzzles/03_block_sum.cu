// 3. The sum over a block.
// A block of 128 threads is four warps. Lanes can exchange numbers only within a warp (warp_reduce is puzzle 2). Warps exchange numbers
// through shared memory, visible to all threads of a block. SHARED(float, sums, [4]) declares four numbers in shared memory. A thread can
// read the numbers of a different thread after a barrier, __syncthreads().
// Task: lane 0 of each warp stores its warp's sum, all threads wait at a barrier, and each adds the four sums into its `total`.
// Unsolved: sum[0] is 528, expected 8256
#include "apps/tour/puzzle.h"
#include "cuda/verbs/reduce.h"

using namespace ricci;
using namespace ricci::puzzle;

namespace {

struct BlockSum {
  static constexpr int kThreads = 128;
  const float* x;
  float* sum;
  __device__ void operator()() const {
    float total = warp_reduce(x[threadIdx.x], Sum{});
#ifdef SOLVED
#include "apps/tour/puzzles/solutions/03_block_sum.inc"
#else
    // Your lines.
#endif
    if (threadIdx.x == 0) sum[0] = total;
  }
};

PUZZLE(3, "the sum over a block") {
  const Tensor x = on_gpu(count_from(1, 128)), sum = gpu_memory(1);
  launch("block_sum", x.device(), {1, BlockSum::kThreads}, BlockSum{x.data<float>(), sum.data<float>()});
  expect("sum", sum, {8256});
}

}  // namespace
