// 2. The sum of a row.
// A matrix of 3 rows and 70 columns is stored row by row: element (r, c) is x[r * 70 + c]. A warp, 32 threads that run together, adds each
// row. Thread t ("lane t") adds the columns t, t + 32, t + 64, ..., so adjacent lanes read adjacent elements. Then the lanes exchange their
// sums without going through memory: __shfl_xor_sync(~0u, total, d) returns the total of lane t ^ d. After d = 16, 8, 4, 2, 1 every lane
// has the full sum. Task: the loop over the columns is complete. Add the five exchanges.
// Unsolved: sum[0] is 96, expected 2415
#include "apps/tour/puzzle.h"

using namespace ricci;
using namespace ricci::puzzle;

namespace {

struct RowSum {
  static constexpr int kThreads = 32;
  int columns;
  const float* x;
  float* sum;
  __device__ void operator()() const {
    float total = 0;
    for (int c = static_cast<int>(threadIdx.x); c < columns; c += 32) total += x[static_cast<int>(blockIdx.x) * columns + c];
#ifdef SOLVED
#include "apps/tour/puzzles/solutions/02_row_sum.inc"
#else
      // Your lines.
#endif
    if (threadIdx.x == 0) sum[blockIdx.x] = total;
  }
};

PUZZLE(2, "the sum of a row") {
  const Tensor x = on_gpu(count_from(0, 210)), sum = gpu_memory(3);
  launch("row_sum", x.device(), {3, RowSum::kThreads}, RowSum{70, x.data<float>(), sum.data<float>()});
  expect("sum", sum, {2415, 7315, 12215});
}

}  // namespace
