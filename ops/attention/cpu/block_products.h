// How the products of the blocks are made: of packed numbers of type E, which is the type A of the sums, or bf16 where the processor has
// instructions for it.
#pragma once
#include <algorithm>

#include "ops/attention/cpu/block.h"

namespace ricci::attention_kernels {

template <class E, class A> struct BlockProducts;

// Packed q holds the scale, and keys are transposed.
template <class A> struct BlockProducts<A, A> {
  static int64_t row(int64_t width) { return padded_width<A>(width); }
  template <class T> static void pack_rows(const T* from, int64_t from_row, int64_t rows, int64_t width, A factor, A* to, int64_t row) {
    pack(from, from_row, rows, width, factor, to, row);
  }
  template <class T> static void pack_columns(const T* from, int64_t from_row, int64_t rows, int64_t width, A* to) {
    transpose(from, from_row, rows, width, to);
  }
  static void scores(const Tile& tile, const A* a, int64_t row, const A* b_xj, int64_t width, A /*scale*/, A* s_ij) {
    multiply_visible(tile, a, row, b_xj, width, s_ij);
  }
  static void over_keys(const Tile& tile, const A* w_ij, const A* b, int64_t row, int64_t width, A* c) {
    add_over_keys(tile, w_ij, b, row, width, c);
  }
  static void over_queries(const Tile& tile, const A* w_ij, A /*factor*/, const A* b, int64_t row, int64_t width, A* c) {
    add_over_queries(tile, w_ij, b, row, width, c);
  }
};

// Rows without gaps, as they are in the tensor: scores and weights are scaled.
template <> struct BlockProducts<bf16, float> {
  static int64_t row(int64_t width) { return width; }
  static void pack_rows(const bf16* from, int64_t from_row, int64_t rows, int64_t width, float /*factor*/, bf16* to, int64_t /*row*/) {
    for (int64_t r = 0; r < rows; ++r) std::copy_n(from + r * from_row, width, to + r * width);
  }
  static void pack_columns(const bf16* from, int64_t from_row, int64_t rows, int64_t width, bf16* to) {
    pack_rows(from, from_row, rows, width, 1, to, width);
  }
  static void scores(const Tile& tile, const bf16* a, int64_t /*row*/, const bf16* b_jx, int64_t width, float scale, float* s_ij) {
    multiply_bf16(tile, a, b_jx, width, scale, s_ij);
  }
  static void over_keys(const Tile& tile, const float* w_ij, const bf16* b, int64_t /*row*/, int64_t width, float* c) {
    add_over_keys_bf16(tile, w_ij, b, width, c);
  }
  static void over_queries(const Tile& tile, const float* w_ij, float factor, const bf16* b, int64_t /*row*/, int64_t width, float* c) {
    add_over_queries_bf16(tile, w_ij, factor, b, width, c);
  }
};

// Calls f(T(), E()) for tensors of that dtype.
template <class F> void with_products(const Tensor& t, const Problem& problem, const F& f) {
  with_dtype(t, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, bf16>)
      if (multiplies_in_bf16(problem)) return f(T(), bf16());
    f(T(), Accumulator<T>());
  });
}

}  // namespace ricci::attention_kernels
