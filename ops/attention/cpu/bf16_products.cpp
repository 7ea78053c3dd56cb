// Products of the blocks in bf16, on processors that have instructions for it (AVX512_BF16). What is not visible is computed, too, and
// weighs nothing.
#include "core/cpu/isa.h"
#include "cuda/gemm/backends.h"
#include "ops/attention/cpu/block.h"

namespace ricci::attention_kernels {
namespace {

constexpr int64_t kMinWidth = 64;  // a head's: with less, products in f32 are faster

struct Round {
  Tile tile;
  const float* w;
  float factor;
  bf16* target;
  HD void operator()(int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end; ++i) {
      const int first = tile.first[i], last = tile.end[i];
#pragma omp simd
      for (int j = 0; j < kBlock; ++j) {
        const float value = w[i * kBlock + j] * factor;
        store(target + i * kBlock + j, ((j >= first) & (j < last)) ? value : 0.0f);
      }
    }
  }
};

struct Scale {
  float factor;
  float* s;
  HD void operator()(int64_t begin, int64_t end) const {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) s[i] *= factor;
  }
};

struct Weights {
  alignas(64) bf16 w_ij[kBlock * kBlock];
  Weights(const Tile& tile, const float* from, float factor) { run_vectorized(Round{tile, from, factor, w_ij}, 0, tile.queries()); }
};

// On the thread that calls, because such a product is too small to be cut.
void gemm_of_block(
    int64_t m, int64_t n, int64_t k, const bf16* a, MatrixAt a_at, const bf16* b, MatrixAt b_at, float* c, int64_t c_row, bool accumulate) {
  // clang-format off
  gemm_blocked({.device = Device::cpu, .dtype = Dtype::bf16, .batch = 1, .m = m, .n = n, .k = k, .a = a, .b = b,
                .a_at = a_at, .b_at = b_at, .c = c, .c_at = {c_row, 1, 0}, .accumulate = accumulate, .c_f32 = true});
  // clang-format on
}

}  // namespace

bool multiplies_in_bf16(const Problem& problem) { return cpu_isa() >= Isa::avx512_bf16 && problem.width >= kMinWidth; }

void multiply(const Tile& tile, const bf16* a, int64_t /*row*/, const bf16* b_jx, int64_t width, float scale, float* s_ij) {
  gemm_of_block(tile.queries(), tile.keys(), width, a, {width, 1, 0}, b_jx, {1, width, 0}, s_ij, kBlock, false);
  if (scale != 1) run_vectorized(Scale{scale, s_ij}, 0, tile.queries() * kBlock);
}

void add_over_keys(const Tile& tile, const float* w_ij, const bf16* b, int64_t /*row*/, int64_t width, float* c) {
  const Weights weights(tile, w_ij, 1);
  gemm_of_block(tile.queries(), width, tile.keys(), weights.w_ij, {kBlock, 1, 0}, b, {width, 1, 0}, c, width, true);
}

void add_over_queries(const Tile& tile, const float* w_ij, float factor, const bf16* b, int64_t /*row*/, int64_t width, float* c) {
  const Weights weights(tile, w_ij, factor);
  gemm_of_block(tile.keys(), width, tile.queries(), weights.w_ij, {1, kBlock, 0}, b, {width, 1, 0}, c, width, true);
}

}  // namespace ricci::attention_kernels
