// The inner loop of the blocked matrix product:  sum_ij = sum_k a_ki b_kj  for a tile of rows i and columns j, with all sums
// in registers. Every element is summed over k in the same order, wherever it is in a tile, a panel or a task.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/cpu/vectors.h"
#include "core/tensor.h"

namespace ricci {

// Elements T that are packed one by one, as what sums are held in. A kind of elements defines how they are packed and summed.
template <class T> struct Single {
  using Element = T;
  using Sum = Accumulator<T>;
  using Packed = Sum;
  static constexpr int kTerms = 1, kUnit = 1;  // terms of a sum in one Packed; the number of Packed is a multiple of kUnit
  static constexpr bool kByTiles = false;

  // True for a factor whose k terms can be multiplied where they are.
  static bool in_place(int64_t line_stride, int64_t k_stride, int64_t /*k*/) {
    return std::is_same_v<T, Sum> && (line_stride == 1 || k_stride == 1);
  }

  // The terms from `terms` on; `more` of them exist.
  static HD Packed load(const T* terms, int64_t /*k_stride*/, int64_t /*more*/) { return static_cast<Packed>(*terms); }

  // sum += a b. Vectors are passed by reference, so that g++ does not warn of calls between instruction sets.
  template <class Vec> static HD void multiply_add(Vec& sum, Packed a, const Vec& b) { sum = sum + a * b; }
};

// Calls f(number of rows as a constant, first row) for panels of kRows rows, and for what is left over in panels of powers of two.
template <int kRows, class F> HD void for_panels(int64_t rows, F f, int64_t row = 0) {
  for (; row + kRows <= rows; row += kRows) f(std::integral_constant<int, kRows>{}, row);
  if constexpr (kRows > 1) for_panels<static_cast<int>(std::bit_floor(kRows - 1u))>(rows, f, row);
}

// The destination of a tile's sums: to `sums`, and at last, when c is of another type, from there to c.
template <class Sum, class C> struct TileTo {
  Sum* sums = nullptr;
  int64_t sum_stride = 0;  // between rows
  bool add = false;        // to what is in `sums`
  C* c = nullptr;          // null while terms are missing, or where the sums are c itself
  int64_t c_stride = 0;
  bool accumulate = false;    // to what is in c
  const Sum* bias = nullptr;  // at the first column; null if there is none or it is in `sums` already
  int64_t columns = 0;        // that exist
};

// The place of a factor's terms: a tile's lines are rows of a or columns of b.
template <class Packed> struct Lines {
  const Packed* first;
  int64_t stride;
};

// ks terms of Rows rows of a times those of two vectors of columns of b, vectors having `Bytes`. The columns of b are neighbours and its
// terms are a stride apart. For a this is so, too, or its terms are neighbours and its rows a stride apart (kAlongK): panels that were
// packed are read as matrices in place are.
template <class Kind, int Rows, int Bytes, bool kAlongK, class C> struct MultiplyTile {
  using Sum = typename Kind::Sum;
  using Packed = typename Kind::Packed;
  static constexpr int kVector = Bytes / sizeof(Sum), kColumns = 2 * kVector;
  typedef Sum Vec __attribute__((vector_size(Bytes), aligned(kAlignedValues ? Bytes : sizeof(Sum)), may_alias));
  typedef Sum Stored __attribute__((vector_size(Bytes), aligned(sizeof(Sum)), may_alias));
  typedef Packed Word __attribute__((aligned(alignof(typename Kind::Element)), may_alias));
  int64_t ks;
  Lines<Packed> a, b;
  TileTo<Sum, C> target;

  HD void operator()(int64_t, int64_t) const {
    Vec left[Rows], right[Rows];
    if constexpr (Kind::kByTiles) Kind::template multiply<Rows>(ks, a, b, left, right);
    else multiply(left, right);
    if (target.columns < kColumns || (target.c && Kind::kTerms == 1)) return store_some(left, right);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      store(left[i], i, 0);
      store(right[i], i, kVector);
    }
  }

 private:
  HD void multiply(Vec (&left)[Rows], Vec (&right)[Rows]) const {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      left[i] = Vec{};
      right[i] = Vec{};
    }
    // Three rows share a pointer, because there are fewer registers for addresses than rows.
    constexpr int kTogether = kAlongK ? 3 : Rows, kPointers = (Rows + kTogether - 1) / kTogether;
    const int64_t row_stride = kAlongK ? a.stride : 1, step = kAlongK ? 1 : a.stride;
    const Word* rows[kPointers];
#pragma GCC unroll 16
    for (int p = 0; p < kPointers; ++p) rows[p] = a.first + p * kTogether * row_stride;
    const Packed* b_k = b.first;
    for (int64_t k = 0; k < ks; ++k, b_k += b.stride) {
      const Vec b_left = *reinterpret_cast<const Stored*>(b_k), b_right = *reinterpret_cast<const Stored*>(b_k + kVector);
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
        const Packed a_ik = rows[i / kTogether][i % kTogether * row_stride];
        Kind::multiply_add(left[i], a_ik, b_left);
        Kind::multiply_add(right[i], a_ik, b_right);
      }
#pragma GCC unroll 16
      for (int p = 0; p < kPointers; ++p) {
        rows[p] += step;
        asm("" : "+r"(rows[p]));  // otherwise g++ makes a pointer of every row, most of them in memory
      }
    }
  }

  HD void store(Vec& sum, int i, int j) const {
    Stored* const stored = reinterpret_cast<Stored*>(target.sums + i * target.sum_stride + j);
    if (target.bias) sum += *reinterpret_cast<const Stored*>(target.bias + j);
    if (target.add) sum += *stored;
    if constexpr (!std::is_same_v<C, Sum> && Kind::kTerms > 1)
      if (target.c) {
        C* const c = target.c + i * target.c_stride + j;
        if (target.accumulate) Kind::add(sum, c);
        return Kind::put(sum, c);
      }
    *stored = sum;
  }
  // For tiles with missing columns, and for types that vectors cannot make by one instruction.
  HD void store_some(const Vec (&left)[Rows], const Vec (&right)[Rows]) const {
    Sum sums[Rows][kColumns];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      std::memcpy(sums[i], &left[i], Bytes);
      std::memcpy(sums[i] + kVector, &right[i], Bytes);
    }
    for (int i = 0; i < Rows; ++i) {
      Sum* const stored = target.sums + i * target.sum_stride;
      for (int64_t j = 0; j < target.columns && target.bias; ++j) sums[i][j] += target.bias[j];
      for (int64_t j = 0; j < target.columns && target.add; ++j) sums[i][j] += stored[j];
      if (!target.c) {
        std::memcpy(stored, sums[i], static_cast<size_t>(target.columns) * sizeof(Sum));
        continue;
      }
      C* const c = target.c + i * target.c_stride;
      for (int64_t j = 0; j < target.columns && target.accumulate; ++j) sums[i][j] += static_cast<Sum>(c[j]);
#pragma omp simd
      for (int64_t j = 0; j < target.columns; ++j) c[j] = static_cast<C>(sums[i][j]);
    }
  }
};

}  // namespace ricci
