// 1. An op over elements.
// A GPU runs one function in thousands of threads. threadIdx.x is the index of a thread in its block, blockIdx.x the index of the block,
// and blockDim.x the number of threads in a block. Here 2 blocks of 64 threads compute 100 numbers, one each; 28 threads have nothing to
// do. Task: y[i] = max(x[i], 0) for every i below n. The emulator reports threads that write beyond the end.
// Unsolved: y[0] is nan, expected 0
#include "apps/tour/puzzle.h"

using namespace ricci;
using namespace ricci::puzzle;

namespace {

struct Relu {
  static constexpr int kThreads = 64;
  int n;
  const float* x;
  float* y;
  __device__ void operator()() const {
#ifdef SOLVED
#include "apps/tour/puzzles/solutions/01_element.inc"
#else
    // Your lines.
#endif
  }
};

PUZZLE(1, "an op over elements") {
  const Tensor x = on_gpu(count_from(-50, 100)), y = gpu_memory(100);
  launch("relu", x.device(), {2, Relu::kThreads}, Relu{100, x.data<float>(), y.data<float>()});
  std::vector<float> expected(50, 0);
  for (const float value : count_from(0, 50)) expected.push_back(value);
  expect("y", y, expected);
}

}  // namespace
