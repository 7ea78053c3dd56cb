// Shared by the kernels on warpgroup products: tiles that tensor cores read directly from shared memory, and the products of a warpgroup. A
// warpgroup has 64 rows of the left operand and of the result. Each of its warps holds 16 of these rows, with the layout of tile.h.
#pragma once
#include "ops/attention/flash/mask.h"

namespace ricci::attention_kernels::flash {

// Rows of kWidth elements as the tensor cores read them: panels of 64 columns, one after the other, each aligned to 1,024 bytes. A panel is
// a Tile<64>: its permutation of chunks is the swizzle of 128 bytes that the hardware expects.
template <int kRows, int kWidth> struct Panels {
  static constexpr int kCount = kWidth / 64, kRowBytes = 128, kPanelBytes = kRows * kRowBytes, kBytes = kCount * kPanelBytes;
  bf16* data;

  __device__ Tile<64> panel(int i) const { return {data + i * kRows * 64}; }
  // Starts to load all rows of a head from row t on; rows from `end` on become zeros. The rows of a thread are a multiple of 8 apart, so
  // its chunks are permuted alike.
  template <int kThreads> __device__ void begin(const HeadRows<const bf16>& rows, int chunk, int t, int end) const {
    constexpr int kStep = kThreads / 8;
    static_assert(kRows % kStep == 0 && kStep % 8 == 0);
    const int row = static_cast<int>(threadIdx.x) / 8, of_row = static_cast<int>(threadIdx.x) % 8, pitch = static_cast<int>(rows.row);
    const bf16* source = row_of(rows, chunk + (row * (pitch / kChunk) + of_row), t);
    bf16* target = panel(0).at(row, of_row);
    UNROLL(16)
    for (int n = 0; n < kRows; n += kStep) {
      const int bytes = n + row < end - t ? 16 : 0;
      UNROLL(2)
      for (int i = 0; i < kCount; ++i) ptx::cp_async<16>(target + i * kRows * 64, source + i * 64, bytes);
      source += kStep * pitch;
      target += kStep * 64;
    }
  }
  // For a right operand: columns(k) is for columns 16 k .. 16 k + 15 of all rows, if rows are the columns of the product; rows(k) is for
  // rows 16 k .. 16 k + 15, if the operand is transposed.
  __device__ ptx::Descriptor descriptor() const { return ptx::descriptor(data, kPanelBytes, 8 * kRowBytes); }
  __device__ static int columns(int k) { return k / 4 * kPanelBytes + k % 4 * 32; }
  __device__ static int rows(int k) { return 16 * k * kRowBytes; }
};

// c = a b^T for 64 rows of a and 64 of b, as a separate group of products. A and B are the types of their panels.
template <class A, class B> __device__ inline void begin_scores(float (&c)[8][4], ptx::Descriptor a, ptx::Descriptor b) {
  ptx::wgmma_bf16<false, false>(c, a, b);
  UNROLL(16)
  for (int k = 1; k < 4 * A::kCount; ++k) ptx::wgmma_bf16<false, true>(c, a.after(A::columns(k)), b.after(B::columns(k)));
  ptx::wgmma_commit();
}

// The bits of a warp's 16 x 64 weights that dropout keeps, four for each tile of 8 columns. They are sampled while the products of the
// scores run: later, all registers are in use.
struct KeptBits {
  unsigned bits = 0;
  __device__ unsigned operator()(int, int x) const { return bits >> 4 * x; }
  __device__ void draw_queries(const Problem& problem, int head, int t, int j) {
    const Kept kept(problem, head);
    UNROLL(2)
    for (int x = 0; x < 8; ++x) bits |= kept.of_queries(t, j + 8 * x) << 4 * x;
  }
  __device__ void draw_keys(const Problem& problem, int head, int t, int j) {
    const Kept kept(problem, head);
    UNROLL(2)
    for (int x = 0; x < 8; ++x) bits |= kept.of_keys(t + 8 * x, j) << 4 * x;
  }
};

// Rounds a result of 64 columns to bf16 for use as a left operand. A lane holds exactly the elements of the result that it needs as its
// part of the operand.
__device__ inline void pack_left(uint32_t (&w)[4][4], const float (&c)[8][4]) {
  UNROLL(16)
  for (int n = 0; n < 16; ++n) w[n / 4][n % 4] = ptx::pack_bf16(c[n / 2][n % 2 * 2], c[n / 2][n % 2 * 2 + 1]);
}

// o += w b for the 64 rows of b in the panels B, as a separate group of products.
template <class B, int kColumnTiles>
__device__ inline void begin_weighted(float (&o)[kColumnTiles][4], const uint32_t (&w)[4][4], ptx::Descriptor b) {
  UNROLL(4)
  for (int k = 0; k < 4; ++k) ptx::wgmma_bf16<true, true>(o, w[k], b.after(B::rows(k)));
  ptx::wgmma_commit();
}

// o += p b, with p rounded to bf16.
template <class B, int kColumnTiles>
__device__ inline void add_weighted(float (&o)[1][kColumnTiles][4], const float (&p)[8][4], ptx::Descriptor b) {
  uint32_t w[4][4];
  pack_left(w, p);
  ptx::wgmma_fence(o, w);
  begin_weighted<B>(o[0], w, b);
  ptx::wgmma_wait<0>(o);
}

}  // namespace ricci::attention_kernels::flash
