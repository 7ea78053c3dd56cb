// 9. Online softmax.
// Attention needs sum_j exp(s_j - max) v_j / sum_j exp(s_j - max). Flash attention computes this quotient in one pass over the scores s. It
// keeps the largest score so far, and both sums relative to it. A larger score changes the maximum, and then both sums are too large by the
// factor exp(new max - old max).
// Task: correct the two sums before the new score is added.
// Unsolved: y[0] is 2.33333, expected 3.71775
#include "apps/tour/puzzle.h"
#include "cuda/math.h"

using namespace ricci;
using namespace ricci::puzzle;

namespace {

struct Attend {
  static constexpr int kThreads = 1;
  int count;
  const float *scores, *values;
  float* y;
  __device__ void operator()() const {
    float max = scores[0], weights = 1, weighted = values[0];
    for (int j = 1; j < count; ++j) {
      const float larger = scores[j] > max ? scores[j] : max;
#ifdef SOLVED
#include "apps/tour/puzzles/solutions/09_online_softmax.inc"
#else
      // Your lines.
#endif
      max = larger;
      const float weight = math::exp(scores[j] - max);
      weights += weight;
      weighted += weight * values[j];
    }
    y[0] = weighted / weights;
  }
};

// The weights are exp(1), exp(3) and exp(5) over their sum: 0.015876, 0.117310, 0.866814.
PUZZLE(9, "online softmax") {
  const Tensor scores = on_gpu({1, 3, 5}), values = on_gpu({1, 2, 4}), y = gpu_memory(1);
  launch("attend", y.device(), {1, 1}, Attend{3, scores.data<float>(), values.data<float>(), y.data<float>()});
  expect("y", y, {3.717752f}, 2e-6f);
}

}  // namespace
