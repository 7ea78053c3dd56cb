// The steps of a block that go row by row: the softmax of the forward and of the backward, packing, transposing.
#include "core/cpu/isa.h"
#include "cuda/math.h"
#include "ops/attention/cpu_block.h"
#include "ops/attention/cpu_vectors.h"

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

template <class A, int Bytes> struct ForwardSoftmax {
  using V = Vectors<A, Bytes>;
  Tile tile;
  A *s, *m, *l, *o;
  int64_t row, width;

  // Step by step for all rows: the rows of one step are independent of each other and overlap in the processor.
  HD void operator()(int64_t begin, int64_t end) const {
    A next[kBlock];
    for (int64_t i = begin; i < end; ++i) next[i] = max_with(m[i], s + i * kBlock, Columns(tile, i));
    for (int64_t i = begin; i < end; ++i) exponentials(s + i * kBlock, Columns(tile, i), next[i] > kLowest<A> ? next[i] : A(0));
    for (int64_t i = begin; i < end; ++i) {
      if (next[i] > m[i] && l[i] != 0) rescale(i, math::exp(m[i] - next[i]));
      m[i] = next[i], l[i] += sum(s + i * kBlock, Columns(tile, i));
    }
  }
  HD static A max_with(A largest, const A* s_j, Columns columns) {
#pragma omp simd reduction(max : largest)
    for (int j = columns.begin; j < columns.end; ++j) largest = most(largest, columns.sees(j) ? s_j[j] : kLowest<A>);
    return largest;
  }
  HD static void exponentials(A* s_j, Columns columns, A shift) {
#pragma omp simd
    for (int j = columns.begin; j < columns.end; ++j) s_j[j] = columns.sees(j) ? math::exp(s_j[j] - shift) : A(0);
  }
  HD static A sum(const A* p_j, Columns columns) {
    typename V::Vector total{};
    for (int j = columns.begin; j < columns.end; j += V::kLanes) total += V::at(p_j + j);
    return V::sum(total);
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

template <class T, class A, int Bytes> struct DotRows {
  using V = Vectors<A, Bytes>;
  const T *a, *b;
  int64_t row, width;
  A* sum_r;
  HD void operator()(int64_t begin, int64_t end) const {
    for (int64_t r = begin; r < end; ++r) {
      typename V::Vector total{}, a_x, b_x;
      int64_t x = 0;
      for (; x + V::kLanes <= width; x += V::kLanes) {
        V::load(a + r * row + x, a_x), V::load(b + r * row + x, b_x);
        total += a_x * b_x;
      }
      sum_r[r] = V::sum(total);
      for (; x < width; ++x) sum_r[r] += A(a[r * row + x]) * A(b[r * row + x]);
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
  using V = Vectors<A, Bytes>;
  using Vector = typename V::Vector;
  static constexpr int n = V::kLanes;
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
    for (int r = 0; r < n; ++r) V::load(source + r * from_row, rows[r]);
#pragma GCC unroll 4
    for (int round = 1; round < n; round *= 2) {
#pragma GCC unroll 8
      for (int r = 0; r < n / 2; ++r) interleave(rows[r], rows[r + n / 2], next[2 * r], next[2 * r + 1], std::make_index_sequence<n>());
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r) rows[r] = next[r];
    }
#pragma GCC unroll 16
    for (int r = 0; r < n; ++r) V::at(target + r * kBlock) = rows[r];
  }
};

}  // namespace

template <class A> void forward_softmax(const Tile& tile, A* s_ij, A* m_i, A* l_i, A* o_ix, int64_t row, int64_t width) {
  with_vectors([&](auto bytes) { run_vectorized(ForwardSoftmax<A, bytes()>{tile, s_ij, m_i, l_i, o_ix, row, width}, 0, tile.queries()); });
}

template <class A> void backward_softmax(const Tile& tile, A* s_ij, A* dp_ij, const A* lse_i, const A* delta_i) {
  run_vectorized(BackwardSoftmax<A>{tile, s_ij, dp_ij, lse_i, delta_i}, 0, tile.queries());
}

template <class T, class A> void pack(const T* from, int64_t from_row, int64_t rows, int64_t width, A factor, A* to, int64_t row) {
  run_vectorized(Pack<T, A>{from, from_row, width, factor, to, row}, 0, rows);
}

template <class T, class A> void transpose(const T* from, int64_t from_row, int64_t rows, int64_t width, A* to) {
  with_vectors([&](auto bytes) { run_vectorized(Transpose<T, A, bytes()>{from, from_row, width, to}, 0, rows); });
}

template <class T, class A>
void unpack(const A* from, int64_t row, int64_t rows, int64_t width, const A* factor_r, A factor, T* to, int64_t to_row) {
  run_vectorized(Unpack<T, A>{from, row, width, factor_r, factor, to, to_row}, 0, rows);
}

template <class T, class A> void dot_rows(const T* a, const T* b, int64_t row, int64_t rows, int64_t width, A* sum_r) {
  with_vectors([&](auto bytes) { run_vectorized(DotRows<T, A, bytes()>{a, b, row, width, sum_r}, 0, rows); });
}

#define FOR_SUMS_IN(A)                                                          \
  template void forward_softmax(const Tile&, A*, A*, A*, A*, int64_t, int64_t); \
  template void backward_softmax(const Tile&, A*, A*, const A*, const A*);
#define FOR_STORAGE(T, A)                                                              \
  template void pack(const T*, int64_t, int64_t, int64_t, A, A*, int64_t);             \
  template void transpose(const T*, int64_t, int64_t, int64_t, A*);                    \
  template void unpack(const A*, int64_t, int64_t, int64_t, const A*, A, T*, int64_t); \
  template void dot_rows(const T*, const T*, int64_t, int64_t, int64_t, A*);
FOR_SUMS_IN(float)
FOR_SUMS_IN(double)
FOR_STORAGE(float, float)
FOR_STORAGE(double, double)
FOR_STORAGE(bf16, float)

}  // namespace ricci::attention_kernels
