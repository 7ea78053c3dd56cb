// 4. Shared memory.
// y[i] is the sum of x[i - 1], x[i] and x[i + 1], with zeros beyond both ends. Three threads need each number, so the block reads it once
// from global memory, into a tile in shared memory. The tile needs 34 numbers: 32 and one beyond each end.
// Task: the tile is too small. Enlarge it, and set its two ends to 0.
// Unsolved: thread 31 of block 0: tile of 128 bytes was written out of bounds, at byte 128
#include "apps/tour/puzzle.h"

using namespace ricci;
using namespace ricci::puzzle;

namespace {

struct Neighbours {
  static constexpr int kThreads = 32;
  const float* x;
  float* y;
  __device__ void operator()() const {
    const unsigned t = threadIdx.x;
#ifdef SOLVED
#include "apps/tour/puzzles/solutions/04_shared_memory.inc"
#else
    SHARED(float, tile, [32]);
#endif
    tile[t + 1] = x[t];
    __syncthreads();
    y[t] = tile[t] + tile[t + 1] + tile[t + 2];
  }
};

PUZZLE(4, "shared memory") {
  const Tensor x = on_gpu(count_from(1, 32)), y = gpu_memory(32);
  launch("neighbours", x.device(), {1, Neighbours::kThreads}, Neighbours{x.data<float>(), y.data<float>()});
  std::vector<float> expected(32);
  for (int i = 0; i < 32; ++i) expected[static_cast<size_t>(i)] = static_cast<float>(3 * (i + 1));
  expected[31] = 63;
  expect("y", y, expected);
}

}  // namespace
