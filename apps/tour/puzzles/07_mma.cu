// 7. The fragment of a tensor core.
// mma_bf16 multiplies a [16 16] by b [16 8] and adds to c [16 8]. The matrices are spread over the registers of the 32 lanes (table:
// cuda/ptx.h). With g = lane / 4 and t = lane % 4, a[0] holds row g, columns 2t and 2t + 1, two bf16 in 32 bits;
// a[1] holds row g + 8 of these columns; a[2] and a[3] hold the rows g and g + 8 at the columns 2t + 8 and 2t + 9.
// pack(row, column) packs such a pair. b consists of two identity matrices, one below the other: c must be the sum of the left and right
// halves of a.
// Task: three of the four registers of a are zero. Fill them.
// Unsolved: c[0] is 0, expected 8
#include "apps/tour/puzzle.h"
#include "cuda/ptx.h"

using namespace ricci;
using namespace ricci::puzzle;

namespace {

struct Multiply {
  static constexpr int kThreads = 32;
  const float* a;  // [16 16]
  float* c;        // [16 8]

  __device__ uint32_t pack(unsigned row, unsigned column) const { return ptx::pack_bf16(a[16 * row + column], a[16 * row + column + 1]); }
  __device__ void operator()() const {
    const unsigned g = threadIdx.x / 4, t = threadIdx.x % 4;
    uint32_t registers[4] = {pack(g, 2 * t), 0, 0, 0};
#ifdef SOLVED
#include "apps/tour/puzzles/solutions/07_mma.inc"
#else
    // Your lines.
#endif
    // b[k][column] is 1 if k == column or k == column + 8, so c adds the columns of the two halves.
    const auto one_at = [&](unsigned k) { return ptx::pack_bf16(k == g ? 1.0f : 0.0f, k + 1 == g ? 1.0f : 0.0f); };
    const uint32_t b[2] = {one_at(2 * t), one_at(2 * t)};
    float sums[4] = {};
    ptx::mma_bf16(sums, registers, b);
    for (unsigned i = 0; i < 4; ++i) c[8 * (i < 2 ? g : g + 8) + 2 * t + i % 2] = sums[i];
  }
};

PUZZLE(7, "the fragment of a tensor core") {
  const Tensor a = on_gpu(count_from(0, 256)), c = gpu_memory(128);
  launch("multiply", a.device(), {1, Multiply::kThreads}, Multiply{a.data<float>(), c.data<float>()});
  std::vector<float> expected;
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) expected.push_back(static_cast<float>(32 * row + 2 * column + 8));
  expect("c", c, expected);
}

}  // namespace
