// 8. One level of the Dispatcher.
// Shift-and-sum has log2(n) levels. At level r, position i adds the value of position i - 2^r, times its own coefficient:
//   y[i] = x[i] + coef[i] * x[i - shift],  shift = 2^r;  if i < shift, nothing is added
// Each level doubles the number of positions that a position depends on: after 3 levels, position 7 depends on the positions 0 to 7.
// The launches of the levels alternate between two arrays, so no thread reads a number that a different thread has overwritten.
// Task: add the second term.
// Unsolved: y[1] is 2, expected 3
#include "apps/tour/puzzle.h"

using namespace ricci;
using namespace ricci::puzzle;

namespace {

struct Level {
  static constexpr int kThreads = 8;
  int shift;
  const float *x, *coef;
  float* y;
  __device__ void operator()() const {
    const int i = static_cast<int>(threadIdx.x);
#ifdef SOLVED
#include "apps/tour/puzzles/solutions/08_shift_and_sum.inc"
#else
    y[i] = x[i];
#endif
  }
};

// All coefficients are 1, so y[i] must be the sum of x[0] to x[i].
PUZZLE(8, "one level of the Dispatcher") {
  Tensor x = on_gpu(count_from(1, 8)), y = gpu_memory(8);
  const Tensor coef = on_gpu(std::vector<float>(8, 1));
  for (int shift = 1; shift < 8; shift *= 2) {
    launch("level", x.device(), {1, Level::kThreads}, Level{shift, x.data<float>(), coef.data<float>(), y.data<float>()});
    std::swap(x, y);
  }
  expect("y", x, {1, 3, 6, 10, 15, 21, 28, 36});
}

}  // namespace
