// c_mn = sum_k a_mk b_kn for few rows m, as in decoding, if the terms of b's columns are contiguous. Reading b takes nearly all of the
// time, so b is not packed. A few rows are multiplied by a few columns at a time. Meanwhile, the next columns are prefetched.
#include <algorithm>

#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/memory/dry_run.h"
#include "core/tensor.h"
#include "cuda/gemm/backends.h"

namespace ricci {
namespace {

constexpr int64_t kChunkBytes = 1 << 16;            // bytes of b that a thread reads at a time
constexpr int64_t kFewRows = 12, kFewRowsBf16 = 1;  // with more rows, the blocked product is faster
constexpr int kTogether = 4;                        // rows that are multiplied together

// M rows of one matrix. Their terms are dense and have the type of the sums.
template <int M, class T> struct Rows {
  using A = Accumulator<T>;
  static constexpr int kLanes = 64 / sizeof(A), kColumns = M > 1 ? 2 : 4;
  Gemm g;
  int64_t row;  // index of the first row; rows from g.m on are zeros
  const A* a;

  HD void operator()(int64_t begin, int64_t end) const {
    int64_t column = begin;
    for (; column + kColumns <= end; column += kColumns) columns<kColumns>(column);
    for (; column < end; ++column) columns<1>(column);
  }

 private:
  template <int N> HD void columns(int64_t first) const {
    const int64_t step = g.b_at.column_stride;
    const T* b = static_cast<const T*>(g.b) + first * step;
    A lane[N][M][kLanes] = {};
    int64_t k = 0;
    for (; k + kLanes <= g.k; k += kLanes)
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) {
        __builtin_prefetch(b + (n + N) * step + k);
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m)
#pragma omp simd
          for (int j = 0; j < kLanes; ++j) lane[n][m][j] += a[m * g.k + k + j] * static_cast<A>(b[n * step + k + j]);
      }
    for (int n = 0; n < N; ++n)
      for (int m = 0; m < M; ++m) {
        for (int64_t rest = k; rest < g.k; ++rest) lane[n][m][0] += a[m * g.k + rest] * static_cast<A>(b[n * step + rest]);
        A sum = 0;
        for (int j = 0; j < kLanes; ++j) sum += lane[n][m][j];
        if (row + m < g.m) store(row + m, first + n, sum);
      }
  }
  HD void store(int64_t i, int64_t j, A sum) const {
    if (g.bias_n) sum += A(static_cast<const T*>(g.bias_n)[j]);
    const int64_t offset = i * g.c_at.row_stride + j * g.c_at.column_stride;
    g.c_f32 ? put(static_cast<float*>(g.c) + offset, sum) : put(static_cast<T*>(g.c) + offset, sum);
  }
  template <class C> HD void put(C* target, A sum) const { *target = static_cast<C>(g.accumulate ? sum + static_cast<A>(*target) : sum); }
};

// The matrices a of the full batch, dense, with `rows` rows each.
template <class T> Tensor dense_rows(const Gemm& g, int64_t rows) {
  using A = Accumulator<T>;
  const Tensor dense({g.batch, rows, g.k}, dtype_of<A>);
  if (is_dry_run()) return dense;
  A* target = dense.data<A>();
  for (int64_t z = 0; z < g.batch; ++z)
    for (int64_t m = 0; m < rows; ++m) {
      const T* from = static_cast<const T*>(g.a) + z * g.a_at.batch_stride + m * g.a_at.row_stride;
      for (int64_t k = 0; k < g.k; ++k) *target++ = m < g.m ? static_cast<A>(from[k * g.a_at.column_stride]) : A(0);
    }
  return dense;
}

template <class T> void multiply(const Gemm& g) {
  using A = Accumulator<T>;
  const int64_t rows = (g.m + kTogether - 1) / kTogether * kTogether, column_bytes = std::max<int64_t>(1, g.k * int64_t{sizeof(T)});
  const Tensor a = dense_rows<T>(g, rows);
  const int64_t columns = std::max<int64_t>(64, kChunkBytes / column_bytes / 64 * 64), chunks = (g.n + columns - 1) / columns;
  const int64_t grain = std::max<int64_t>(1, kChunkBytes / (std::min(columns, g.n) * column_bytes));
  parallel_for(g.batch * chunks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t z = chunk / chunks, first = chunk % chunks * columns, last = std::min(g.n, first + columns);
      const Gemm one = matrix_of(g, z);
      for (int64_t row = 0; row < g.m; row += kTogether) {
        const A* const terms = a.data<A>() + (z * rows + row) * g.k;
        if (row + 1 == g.m) run_vectorized(Rows<1, T>{one, row, terms}, first, last);
        else run_vectorized(Rows<kTogether, T>{one, row, terms}, first, last);
      }
    }
  });
}

}  // namespace

bool gemm_few_rows(const Gemm& g) {
  if (g.m > (g.dtype == Dtype::bf16 ? kFewRowsBf16 : kFewRows) || g.b_at.row_stride != 1) return false;
  switch (g.dtype) {
    case Dtype::f32: multiply<float>(g); break;
    case Dtype::f64: multiply<double>(g); break;
    default: multiply<bf16>(g);
  }
  return true;
}

}  // namespace ricci
