// Copies between tensors and packed matrices. Blocks are computed on packed matrices: each row of a head is read many times, and in a
// tensor the rows can be far apart.
#include "core/cpu/isa.h"
#include "core/cpu/vectors.h"
#include "ops/attention/cpu/block.h"

namespace ricci::attention_kernels {
namespace {

template <class T, class A> struct Pack {
  const T* from;
  int64_t from_row, width;
  A factor;
  A* destination;
  int64_t row;
  HD void operator()(int64_t begin, int64_t end) const {
    for (int64_t r = begin; r < end; ++r)
#pragma omp simd
      for (int64_t x = 0; x < width; ++x) destination[r * row + x] = A(from[r * from_row + x]) * factor;
  }
};

template <class T, class A> struct Unpack {
  const A* from;
  int64_t row, width;
  const A* factor_r;
  A factor;
  T* destination;
  int64_t to_row;
  bool add;
  HD void operator()(int64_t begin, int64_t end) const {
    for (int64_t r = begin; r < end; ++r) {
      const A by = factor_r ? factor_r[r] : factor;
      T* const to_x = destination + r * to_row;
      if (add) {
#pragma omp simd
        for (int64_t x = 0; x < width; ++x) store(to_x + x, A(to_x[x]) + from[r * row + x] * by);
      } else {
#pragma omp simd
        for (int64_t x = 0; x < width; ++x) store(to_x + x, from[r * row + x] * by);
      }
    }
  }
};

template <class T, class A, int Bytes> struct DotRows {
  using V = Vectors<A, Bytes>;
  const T* a;
  int64_t a_row;
  const T* b;
  int64_t b_row, width;
  A* sum_r;
  HD void operator()(int64_t begin, int64_t end) const {
    for (int64_t r = begin; r < end; ++r) {
      typename V::Vector total{}, a_x, b_x;
      int64_t x = 0;
      for (; x + V::kLanes <= width; x += V::kLanes) {
        V::load(a + r * a_row + x, a_x);
        V::load(b + r * b_row + x, b_x);
        total += a_x * b_x;
      }
      sum_r[r] = V::sum(total);
      for (; x < width; ++x) sum_r[r] += A(a[r * a_row + x]) * A(b[r * b_row + x]);
    }
  }
};

template <class T, class A, int Bytes> struct Transpose {
  using V = Vectors<A, Bytes>;
  using Vector = typename V::Vector;
  static constexpr int n = V::kLanes;
  const T* from;
  int64_t from_row, width;
  A* destination;

  HD void operator()(int64_t begin, int64_t end) const {
    const int64_t whole_rows = end / n * n, whole = width / n * n;
    for (int64_t r = begin; r < whole_rows; r += n)
      for (int64_t x = 0; x < whole; x += n) square(from + r * from_row + x, destination + x * kBlock + r);
    for (int64_t r = begin; r < end; ++r)
      for (int64_t x = r < whole_rows ? whole : 0; x < width; ++x) destination[x * kBlock + r] = A(from[r * from_row + x]);
  }
  // low and high become the two halves of a0 b0 a1 b1 ...
  template <std::size_t... Lane>
  static HD void interleave(const Vector& a, const Vector& b, Vector& low, Vector& high, std::index_sequence<Lane...>) {
    low = __builtin_shufflevector(a, b, (Lane % 2 * n + Lane / 2)...);
    high = __builtin_shufflevector(a, b, (Lane % 2 * n + Lane / 2 + n / 2)...);
  }
  // Transposes a square as wide as a vector: each round interleaves the first half of the rows with the second.
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
    for (int r = 0; r < n; ++r) V::store(target + r * kBlock, rows[r]);
  }
};

}  // namespace

template <class T, class A>
void pack_rows(const T* from, int64_t from_row, int64_t rows, int64_t width, A factor, A* destination, int64_t row) {
  run_vectorized(Pack<T, A>{from, from_row, width, factor, destination, row}, 0, rows);
}

template <class T, class A> void pack_columns(const T* from, int64_t from_row, int64_t rows, int64_t width, A* destination) {
  with_vectors([&](auto bytes) { run_vectorized(Transpose<T, A, bytes()>{from, from_row, width, destination}, 0, rows); });
}

template <class T, class A>
void unpack(
    const A* from, int64_t row, int64_t rows, int64_t width, const A* factor_r, A factor, T* destination, int64_t to_row, bool add) {
  run_vectorized(Unpack<T, A>{from, row, width, factor_r, factor, destination, to_row, add}, 0, rows);
}

template <class T, class A> void dot_rows(const T* a, int64_t a_row, const T* b, int64_t b_row, int64_t rows, int64_t width, A* sum_r) {
  with_vectors([&](auto bytes) { run_vectorized(DotRows<T, A, bytes()>{a, a_row, b, b_row, width, sum_r}, 0, rows); });
}

#define FOR_STORAGE(T, A)                                                                    \
  template void pack_rows(const T*, int64_t, int64_t, int64_t, A, A*, int64_t);              \
  template void pack_columns(const T*, int64_t, int64_t, int64_t, A*);                       \
  template void unpack(const A*, int64_t, int64_t, int64_t, const A*, A, T*, int64_t, bool); \
  template void dot_rows(const T*, int64_t, const T*, int64_t, int64_t, int64_t, A*);
FOR_STORAGE(float, float)
FOR_STORAGE(double, double)
FOR_STORAGE(bf16, float)

}  // namespace ricci::attention_kernels
