// 11. Column sums without atomics.
// The gradient of a bias is a sum over rows, and many blocks share the rows. With atomicAdd(&sum, x), all blocks add to one number. But
// sums of floats are rounded, so the result depends on the order of the blocks, and two identical training runs differ. The check runs the
// blocks forward and in reverse. Instead, each block can write its own sum, and a second kernel adds these in a fixed order (AddUp, below).
// Task: let block b store its total in partial[b] instead of adding to partial[0].
// Unsolved: the sum depends on the order of the blocks: 16777216 forward, 16777236 in reverse
#include "apps/tour/puzzle.h"

using namespace ricci;
using namespace ricci::puzzle;

namespace {

struct SumOfRows {
  static constexpr int kThreads = 1;
  int rows;  // per block
  const float* x;
  float* partial;
  __device__ void operator()() const {
    float total = 0;
    for (int r = 0; r < rows; ++r) total += x[static_cast<int>(blockIdx.x) * rows + r];
#ifdef SOLVED
#include "apps/tour/puzzles/solutions/11_column_sum.inc"
#else
    atomicAdd(&partial[0], total);
#endif
  }
};

struct AddUp {
  static constexpr int kThreads = 1;
  int count;
  const float* partial;
  float* sum;
  __device__ void operator()() const {
    sum[0] = 0;
    for (int b = 0; b < count; ++b) sum[0] += partial[b];
  }
};

float sum_in(emu::Options::Order order) {
  std::vector<float> numbers(42, 0.5f);
  numbers[0] = 16777216;  // 2^24: adding 1 does not change this float
  numbers[1] = 0;
  const Tensor x = on_gpu(numbers), partial = zeros({21}, Dtype::f32, Device::cuda_emulated), sum = gpu_memory(1);
  const emu::Options::Order before = emu::options().order;
  emu::options().order = order;
  launch("sum_of_rows", x.device(), {21, 1}, SumOfRows{2, x.data<float>(), partial.data<float>()});
  launch("add_up", x.device(), {1, 1}, AddUp{21, partial.data<float>(), sum.data<float>()});
  emu::options().order = before;
  return static_cast<float>(item(sum));
}

PUZZLE(11, "column sums without atomics") {
  const float forward = sum_in(emu::Options::Order::forward), reverse = sum_in(emu::Options::Order::reverse);
  if (forward != reverse) fail("the sum depends on the order of the blocks: {:.0f} forward, {:.0f} in reverse", {forward, reverse});
  if (forward != 16777216) fail("sum is {:.0f}, expected 16777216", {forward});
}

}  // namespace
