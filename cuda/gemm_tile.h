// The inner loops of the blocked matrix product: copying panels of a and b into the order they are read in, and
//   sum_ij = sum_k a_ki b_kj
// with a whole tile of sums in registers. Plain loops: inlined into a function for an instruction set (cuda/isa.h) they
// become its vectors. Every element is summed over k in the same order, wherever in a tile, a panel or a task it lies.
#pragma once
#include <cstdint>
#include <type_traits>

#include "core/host_device.h"

namespace ricci {

// Rows x 2 vectors of sums fill the registers.
template <int Rows, int Vector> struct Tile {
  static constexpr int kRows = Rows, kVector = Vector, kColumns = 2 * Vector;
};

// A panel's rows are packed at a distance of a power of two: g++ vectorises the transposition of so many and of no others.
constexpr int padded(int rows) { return rows > 8 ? 16 : rows > 4 ? 8 : rows > 2 ? 4 : rows; }

// Calls f(number of rows as a constant, first row, where its panel is packed) for panels of kRows rows and for what is left
// over in panels of 8, 4, 2, 1.
template <int kRows, class F> HD void for_panels(int64_t rows, F f) {
  int64_t row = 0, at = 0;
  for (; row + kRows <= rows; row += kRows, at += padded(kRows)) f(std::integral_constant<int, kRows>{}, row, at);
  auto rest = [&](auto few) {
    if constexpr (few() < kRows) {
      if (row + few() <= rows) f(few, row, at), row += few(), at += few();
    }
  };
  rest(std::integral_constant<int, 8>{}), rest(std::integral_constant<int, 4>{});
  rest(std::integral_constant<int, 2>{}), rest(std::integral_constant<int, 1>{});
}

// panel[k][i] = from(i, k). The rows that pad the panel repeat the first and are never used.
template <int Rows, class A, class T>
HD void pack_rows(const T* from, int64_t row_stride, int64_t k_stride, int64_t ks, A* __restrict panel) {
  constexpr int kPadded = padded(Rows);
  if (k_stride == 1) {
#pragma omp simd
    for (int64_t k = 0; k < ks; ++k)
#pragma GCC unroll 16
      for (int i = 0; i < kPadded; ++i) panel[k * kPadded + i] = static_cast<A>(from[(i < Rows ? i : 0) * row_stride + k]);
  } else if (row_stride == 1) {
    for (int64_t k = 0; k < ks; ++k)
#pragma omp simd
      for (int i = 0; i < Rows; ++i) panel[k * kPadded + i] = static_cast<A>(from[k * k_stride + i]);
  } else {
    for (int64_t k = 0; k < ks; ++k)
      for (int i = 0; i < Rows; ++i) panel[k * kPadded + i] = static_cast<A>(from[k * k_stride + i * row_stride]);
  }
}

// A panel of b is two of Vector columns, one behind the other; columns past the matrix are zero.
template <int Vector, class A, class T>
HD void pack_columns(const T* from, int64_t k_stride, int64_t column_stride, int64_t ks, int64_t columns, A* __restrict panel) {
  for (int half = 0; half < 2; ++half, from += Vector * column_stride, panel += Vector * ks, columns -= Vector) {
    if (columns >= Vector) {
      pack_rows<Vector>(from, column_stride, k_stride, ks, panel);
      continue;
    }
    for (int64_t k = 0; k < ks; ++k)
      for (int j = 0; j < Vector; ++j) panel[k * Vector + j] = j < columns ? static_cast<A>(from[k * k_stride + j * column_stride]) : A(0);
  }
}

// c_ij = sum_ij (+ c_ij) for Rows rows and the first `columns` columns of a tile; a and b are packed panels.
template <int Rows, int Vector, class A> struct MultiplyTile {
  int64_t ks;
  const A *a, *b;
  A* c;
  int64_t row_stride, columns;
  bool add;

  HD void operator()(int64_t, int64_t) const {
    const A* b_right = b + ks * Vector;
    A left[Rows][Vector] = {}, right[Rows][Vector] = {};
    for (int64_t k = 0; k < ks; ++k)
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i)
#pragma omp simd
        for (int j = 0; j < Vector; ++j) {
          left[i][j] += a[k * padded(Rows) + i] * b[k * Vector + j];
          right[i][j] += a[k * padded(Rows) + i] * b_right[k * Vector + j];
        }
    columns == 2 * Vector ? store(left, right) : store_some(left, right);
  }
  HD void store(const A (&left)[Rows][Vector], const A (&right)[Rows][Vector]) const {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      A* to = c + i * row_stride;
#pragma omp simd
      for (int j = 0; j < Vector; ++j) {
        to[j] = left[i][j] + (add ? to[j] : 0);
        to[j + Vector] = right[i][j] + (add ? to[j + Vector] : 0);
      }
    }
  }
  HD void store_some(const A (&left)[Rows][Vector], const A (&right)[Rows][Vector]) const {
#pragma GCC unroll 1
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 1
      for (int64_t j = 0; j < columns; ++j) {
        A& to = c[i * row_stride + j];
        to = (j < Vector ? left[i][j] : right[i][j - Vector]) + (add ? to : 0);
      }
  }
};

}  // namespace ricci
