// 5. A barrier.
// 128 numbers are added in a tree: the upper half is added to the lower half, then again within the lower half. After each round,
// all threads wait at a barrier, so no thread reads a number before it is written. __syncthreads() waits for every thread of the block.
// Task: only the threads that add reach the barrier. The emulator reports where the other threads are. Correct this.
// Unsolved: returned while others wait for it at a barrier: threads 0-63 at __syncthreads 05_barrier.cu:24; threads 64-127 elsewhere
#include "apps/tour/puzzle.h"

using namespace ricci;
using namespace ricci::puzzle;

namespace {

struct TreeSum {
  static constexpr int kThreads = 128;
  float* x;
  __device__ void operator()() const {
    const unsigned t = threadIdx.x;
#ifdef SOLVED
#include "apps/tour/puzzles/solutions/05_barrier.inc"
#else
    for (unsigned half = 64; half > 0; half /= 2)
      if (t < half) {
        x[t] += x[t + half];
        __syncthreads();
      }
#endif
  }
};

PUZZLE(5, "a barrier") {
  const Tensor x = on_gpu(count_from(1, 128));
  launch("tree_sum", x.device(), {1, TreeSum::kThreads}, TreeSum{x.data<float>()});
  if (item(x, 0) != 8256) fail("x[0] is {:g}, expected 8256", {item(x, 0)});
}

}  // namespace
