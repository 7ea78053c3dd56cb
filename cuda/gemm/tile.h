// The inner loop of the blocked matrix product: sum_ij = sum_k a_ki b_kj for a tile of rows i and columns j. All sums are in registers, so
// the loop does not wait for memory. Every element is summed over k in the same order, independently of its tile, panel or task.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/cpu/vectors.h"
#include "core/tensor.h"

namespace ricci {

// Elements of type T that are packed one by one, in the type of the sums. A kind of elements defines their packing and summing.
template <class T> struct Single {
  using Element = T;
  using Sum = Accumulator<T>;
  using Packed = Sum;
  static constexpr int kTerms = 1, kUnit = 1;  // kTerms terms of a sum are one Packed; the number of Packed is a multiple of kUnit
  static constexpr bool kByTiles = false;

  // True if the k terms of a factor can be multiplied without packing.
  static bool in_place(int64_t line_stride, int64_t k_stride, int64_t /*k*/) {
    return std::is_same_v<T, Sum> && (line_stride == 1 || k_stride == 1);
  }

  // Loads the terms from `terms` on; `more` terms exist.
  static HD Packed load(const T* terms, int64_t /*k_stride*/, int64_t /*more*/) { return static_cast<Packed>(*terms); }

  // sum += a b. Vectors are passed by reference. If they were passed by value, g++ would warn about calls between instruction sets.
  template <class Vec> static HD void multiply_add(Vec& sum, Packed a, const Vec& b) { sum = sum + a * b; }
};

// Calls f(number of rows as a constant, first row) for panels of kRows rows, and then for the remaining rows in panels of powers of two.
template <int kRows, class F> HD void for_panels(int64_t rows, F f, int64_t row = 0) {
  for (; row + kRows <= rows; row += kRows) f(std::integral_constant<int, kRows>{}, row);
  if constexpr (kRows > 1) for_panels<static_cast<int>(std::bit_floor(kRows - 1u))>(rows, f, row);
}

// The destination of a tile's sums: `sums` and, after the last terms, also c if c has a different type. Between the parts of a block of
// terms, the sums stay in `partial`, a dense tile, so the results are bitwise identical for parts of any length.
template <class Sum, class C> struct TileTo {
  Sum* sums = nullptr;
  int64_t sum_stride = 0;  // elements between rows
  bool add = false;        // adds to the numbers in `sums`
  C* c = nullptr;          // null while terms are missing, or if the sums are c itself
  int64_t c_stride = 0;
  bool accumulate = false;    // adds to the numbers in c
  const Sum* bias = nullptr;  // at the first column; null without a bias, or if `sums` already contains it
  int64_t columns = 0;        // number of columns that exist
  Sum* partial = nullptr;
  bool first_piece = true, last_piece = true;
};

// The position of a factor's terms: a tile's lines are rows of a or columns of b.
template <class Packed> struct Lines {
  const Packed* first;
  int64_t stride;
};

// Memory that will be needed soon: a tile prefetches it while it multiplies, one cache line for each term.
struct Fetch {
  const char* first;
  int64_t step;  // bytes from one term to the next
};
constexpr int64_t kTermsAhead = 32;  // a few hundred cycles, about the latency of memory

// Multiplies ks terms of Rows rows of a by two vectors of columns of b; a vector has `Bytes` bytes. The columns of b are contiguous and its
// terms are a stride apart. Either the rows of a are contiguous and its terms a stride apart, or the reverse (kAlongK). Packed panels are
// read like matrices.
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
  Fetch soon;

  HD void operator()(int64_t, int64_t) const {
    Vec left[Rows], right[Rows];
    if (target.last_piece) fetch_sums();
    if constexpr (Kind::kByTiles) Kind::template multiply<Rows>(ks, a, b, left, right);
    else multiply(left, right);
    if (!target.last_piece) return keep(left, right);
    if (target.columns < kColumns || (target.c && Kind::kTerms == 1)) return store_some(left, right);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      store(left[i], i, 0);
      store(right[i], i, kVector);
    }
  }

 private:
  // Prefetches the sums: they have left the caches since the last block of terms.
  HD void fetch_sums() const {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
      for (int j = 0; j < 2 * Bytes; j += 64) __builtin_prefetch(reinterpret_cast<const char*>(target.sums + i * target.sum_stride) + j, 1);
  }

  HD void multiply(Vec (&left)[Rows], Vec (&right)[Rows]) const {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) left[i] = right[i] = Vec{};
    if (!target.first_piece) load(left, right);
    // Three rows share a pointer: there are fewer registers for addresses than rows.
    constexpr int kTogether = kAlongK ? 3 : Rows, kPointers = (Rows + kTogether - 1) / kTogether;
    const int64_t row_stride = kAlongK ? a.stride : 1, step = kAlongK ? 1 : a.stride;
    const Word* rows[kPointers];
#pragma GCC unroll 16
    for (int p = 0; p < kPointers; ++p) rows[p] = a.first + p * kTogether * row_stride;
    const Packed* b_k = b.first;
    const char* fetched = soon.first;
    for (int64_t k = 0; k < ks; ++k, b_k += b.stride, fetched += soon.step) {
      __builtin_prefetch(fetched, 0, 2);
      if constexpr (!kAlongK) __builtin_prefetch(rows[0] + kTermsAhead * a.stride);
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
        asm("" : "+r"(rows[p]));  // keeps g++ from using a pointer for every row, most of them in memory
      }
    }
  }

  HD void load(Vec (&left)[Rows], Vec (&right)[Rows]) const {
    const Stored* sums = reinterpret_cast<const Stored*>(target.partial);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      left[i] = *sums++;
      right[i] = *sums++;
    }
  }
  HD void keep(const Vec (&left)[Rows], const Vec (&right)[Rows]) const {
    Stored* sums = reinterpret_cast<Stored*>(target.partial);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      *sums++ = left[i];
      *sums++ = right[i];
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
  // Stores tiles with missing columns, and types that no vector instruction converts to.
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
