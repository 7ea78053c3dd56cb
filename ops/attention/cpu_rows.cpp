// The steps of a block that go row by row: the softmax of the forward and of the backward, packing, transposing.
#include <cstddef>
#include <utility>

#include "cuda/isa.h"
#include "cuda/math.h"
#include "ops/attention/cpu_block.h"

namespace ricci::attention_kernels {
namespace {

template <class A> constexpr A kLowest = -A(__builtin_huge_val());

// One row's visible columns, in numbers that fit the lanes of a vector.
struct Columns {
  int begin, end, first, last;
  HD Columns(const Tile& tile, int64_t i) {
    const Interval columns = tile.columns_of(i), keys = tile.keys_of(i, 1);
    begin = static_cast<int>(columns.begin), end = static_cast<int>(columns.end);
    first = static_cast<int>(keys.begin), last = static_cast<int>(keys.end);
  }
  HD bool sees(int j) const { return (j >= first) & (j < last); }
};

template <class A> struct ForwardSoftmax {
  Tile tile;
  A *s, *m, *l, *o;
  int64_t row, width;

  HD void operator()(int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end; ++i) {
      A* s_j = s + i * kBlock;
      const Columns columns(tile, i);
      A largest = m[i], sum = 0;
#pragma omp simd reduction(max : largest)
      for (int j = columns.begin; j < columns.end; ++j) {
        const A score = columns.sees(j) ? s_j[j] : kLowest<A>;
        largest = score > largest ? score : largest;
      }
      const A shift = largest > kLowest<A> ? largest : A(0);
#pragma omp simd reduction(+ : sum)
      for (int j = columns.begin; j < columns.end; ++j) {
        const A p = math::exp(s_j[j] - shift);
        s_j[j] = columns.sees(j) ? p : A(0);
        sum += s_j[j];
      }
      if (largest > m[i]) rescale(i, math::exp(m[i] - largest));
      m[i] = largest, l[i] += sum;
    }
  }
  HD void rescale(int64_t i, A factor) const {
    l[i] *= factor;
#pragma omp simd
    for (int64_t x = 0; x < width; ++x) o[i * row + x] *= factor;
  }
};

template <class A> struct BackwardSoftmax {
  Tile tile;
  A *s, *dp;
  const A *lse, *delta;

  HD void operator()(int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end; ++i) {
      A *s_j = s + i * kBlock, *dp_j = dp + i * kBlock;
      const Columns columns(tile, i);
      const A lse_i = lse[i], delta_i = delta[i];
#pragma omp simd
      for (int j = columns.begin; j < columns.end; ++j) {
        const A p = math::exp(s_j[j] - lse_i), ds = p * (dp_j[j] - delta_i);
        s_j[j] = columns.sees(j) ? p : A(0);
        dp_j[j] = columns.sees(j) ? ds : A(0);
      }
    }
  }
};

template <class T, class A> struct Pack {
  const T* from;
  int64_t from_row, width;
  A factor;
  A* to;
  int64_t row;
  HD void operator()(int64_t begin, int64_t end) const {
    for (int64_t r = begin; r < end; ++r)
#pragma omp simd
      for (int64_t x = 0; x < width; ++x) to[r * row + x] = A(from[r * from_row + x]) * factor;
  }
};

template <class T, class A> struct Unpack {
  const A* from;
  int64_t row, width;
  const A* factor_r;
  A factor;
  T* to;
  int64_t to_row;
  HD void operator()(int64_t begin, int64_t end) const {
    for (int64_t r = begin; r < end; ++r) {
      const A by = factor_r ? factor_r[r] : factor;
#pragma omp simd
      for (int64_t x = 0; x < width; ++x) to[r * to_row + x] = T(from[r * row + x] * by);
    }
  }
};

template <class T, class A> struct DotRows {
  const T *a, *b;
  int64_t row, width;
  A* sum_r;
  HD void operator()(int64_t begin, int64_t end) const {
    for (int64_t r = begin; r < end; ++r) {
      A sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t x = 0; x < width; ++x) sum += A(a[r * row + x]) * A(b[r * row + x]);
      sum_r[r] = sum;
    }
  }
};

// low, high = a0 b0 a1 b1 ...
template <class Vector, std::size_t... Lane>
HD void interleave(const Vector& a, const Vector& b, Vector& low, Vector& high, std::index_sequence<Lane...>) {
  constexpr std::size_t n = sizeof...(Lane);
  low = __builtin_shufflevector(a, b, (Lane % 2 * n + Lane / 2)...);
  high = __builtin_shufflevector(a, b, (Lane % 2 * n + Lane / 2 + n / 2)...);
}

template <class T, class A, int Bytes> struct Transpose {
  static constexpr int n = Bytes / static_cast<int>(sizeof(A));
  typedef A Vector __attribute__((vector_size(Bytes), aligned(sizeof(A))));
  const T* from;
  int64_t from_row, width;
  A* to;

  HD void operator()(int64_t begin, int64_t end) const {
    const int64_t whole_rows = end / n * n, whole = width / n * n;
    for (int64_t r = begin; r < whole_rows; r += n)
      for (int64_t x = 0; x < whole; x += n) square(from + r * from_row + x, to + x * kBlock + r);
    for (int64_t r = begin; r < end; ++r)
      for (int64_t x = r < whole_rows ? whole : 0; x < width; ++x) to[x * kBlock + r] = A(from[r * from_row + x]);
  }
  // As many rows as a vector has lanes: each round interleaves the first half of the rows with the second.
  HD void square(const T* source, A* target) const {
    Vector rows[n], next[n];
#pragma GCC unroll 16
    for (int r = 0; r < n; ++r) {
      A row_x[n];
#pragma omp simd
      for (int x = 0; x < n; ++x) row_x[x] = A(source[r * from_row + x]);
      rows[r] = *reinterpret_cast<const Vector*>(row_x);
    }
#pragma GCC unroll 4
    for (int round = 1; round < n; round *= 2) {
#pragma GCC unroll 8
      for (int r = 0; r < n / 2; ++r) interleave(rows[r], rows[r + n / 2], next[2 * r], next[2 * r + 1], std::make_index_sequence<n>());
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r) rows[r] = next[r];
    }
#pragma GCC unroll 16
    for (int r = 0; r < n; ++r) *reinterpret_cast<Vector*>(target + r * kBlock) = rows[r];
  }
};

}  // namespace

template <class A> void forward_softmax(const Tile& tile, A* s_ij, A* m_i, A* l_i, A* o_ix, int64_t row, int64_t width) {
  run_vectorized(ForwardSoftmax<A>{tile, s_ij, m_i, l_i, o_ix, row, width}, 0, tile.queries());
}

template <class A> void backward_softmax(const Tile& tile, A* s_ij, A* dp_ij, const A* lse_i, const A* delta_i) {
  run_vectorized(BackwardSoftmax<A>{tile, s_ij, dp_ij, lse_i, delta_i}, 0, tile.queries());
}

template <class T, class A> void pack(const T* from, int64_t from_row, int64_t rows, int64_t width, A factor, A* to, int64_t row) {
  run_vectorized(Pack<T, A>{from, from_row, width, factor, to, row}, 0, rows);
}

template <class T, class A> void transpose(const T* from, int64_t from_row, int64_t rows, int64_t width, A* to) {
  if (cpu_isa() == Isa::avx512) return run_vectorized(Transpose<T, A, 64>{from, from_row, width, to}, 0, rows);
  run_vectorized(Transpose<T, A, 32>{from, from_row, width, to}, 0, rows);
}

template <class T, class A>
void unpack(const A* from, int64_t row, int64_t rows, int64_t width, const A* factor_r, A factor, T* to, int64_t to_row) {
  run_vectorized(Unpack<T, A>{from, row, width, factor_r, factor, to, to_row}, 0, rows);
}

template <class T, class A> void dot_rows(const T* a, const T* b, int64_t row, int64_t rows, int64_t width, A* sum_r) {
  run_vectorized(DotRows<T, A>{a, b, row, width, sum_r}, 0, rows);
}

#define FOR_SUMS_IN(A) \
  template void forward_softmax(const Tile&, A*, A*, A*, A*, int64_t, int64_t); \
  template void backward_softmax(const Tile&, A*, A*, const A*, const A*);
#define FOR_STORAGE(T, A) \
  template void pack(const T*, int64_t, int64_t, int64_t, A, A*, int64_t); \
  template void transpose(const T*, int64_t, int64_t, int64_t, A*); \
  template void unpack(const A*, int64_t, int64_t, int64_t, const A*, A, T*, int64_t); \
  template void dot_rows(const T*, const T*, int64_t, int64_t, int64_t, A*);
FOR_SUMS_IN(float)
FOR_SUMS_IN(double)
FOR_STORAGE(float, float)
FOR_STORAGE(double, double)
FOR_STORAGE(bf16, float)

}  // namespace ricci::attention_kernels
