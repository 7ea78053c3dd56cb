// 6. An asynchronous copy.
// cp_async<4>(shared, global) starts to copy 4 bytes into shared memory and returns immediately, so the thread can compute meanwhile.
// cp_async_commit() closes the group of started copies, and cp_async_wait<0>() waits until all groups of this thread are complete. Only a
// barrier waits for the copies of other threads. The kernel reverses 64 numbers.
// Task: the copy is started, but no thread waits for it. Add the three lines between the copy and the read.
// Unsolved: returned without waiting for the cp_async at 06_cp_async.cu:21
#include "apps/tour/puzzle.h"
#include "cuda/ptx.h"

using namespace ricci;
using namespace ricci::puzzle;

namespace {

struct Reverse {
  static constexpr int kThreads = 64;
  const float* x;
  float* y;
  __device__ void operator()() const {
    SHARED(float, tile, [64]);
    ptx::cp_async<4>(&tile[threadIdx.x], x + threadIdx.x);
#ifdef SOLVED
#include "apps/tour/puzzles/solutions/06_cp_async.inc"
#else
    // Your lines.
#endif
    y[threadIdx.x] = tile[63 - threadIdx.x];
  }
};

PUZZLE(6, "an asynchronous copy") {
  const Tensor x = on_gpu(count_from(0, 64)), y = gpu_memory(64);
  launch("reverse", x.device(), {1, Reverse::kThreads}, Reverse{x.data<float>(), y.data<float>()});
  std::vector<float> expected(64);
  for (int i = 0; i < 64; ++i) expected[static_cast<size_t>(i)] = static_cast<float>(63 - i);
  expect("y", y, expected);
}

}  // namespace
