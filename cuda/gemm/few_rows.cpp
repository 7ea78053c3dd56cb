// c_mn = sum_k a_mk b_kn for one row m, or a few, as in decoding: bound by reading b. Where b is along k, a few of its
// columns at a time are multiplied by all rows, and the next ones are fetched meanwhile; where it is along n, a strip of
// columns is summed in registers.
#include <algorithm>

#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/memory/dry_run.h"
#include "core/tensor.h"
#include "cuda/gemm/backends.h"

namespace ricci {
namespace {

constexpr int64_t kChunkBytes = 1 << 16;  // bytes of b that a thread reads at a time

// One matrix of the batch. a is dense, of the type that sums are held in, and filled up to M rows with zeros.
template <int M, class T> struct Rows {
  using A = Accumulator<T>;
  int64_t m, k;
  const A* a;
  const T *b, *bias;
  void* c;
  MatrixAt b_at, c_at;
  bool accumulate, c_f32;

  HD void store(int64_t row, int64_t column, A sum) const {
    if (row >= m) return;
    if (bias) sum += A(bias[column]);
    const int64_t offset = row * c_at.row_stride + column * c_at.column_stride;
    if (c_f32) put(static_cast<float*>(c) + offset, sum);
    else put(static_cast<T*>(c) + offset, sum);
  }
  template <class C> HD void put(C* target, A sum) const { *target = static_cast<C>(accumulate ? sum + static_cast<A>(*target) : sum); }
};

// b_at.row_stride is 1.
template <int M, class T> struct AlongK {
  using A = Accumulator<T>;
  static constexpr int kLanes = 64 / sizeof(A), kTogether = M > 1 ? 2 : 4;
  Rows<M, T> p;

  HD void operator()(int64_t begin, int64_t end) const {
    int64_t column = begin;
    for (; column + kTogether <= end; column += kTogether) columns<kTogether>(column);
    for (; column < end; ++column) columns<1>(column);
  }
  template <int N> HD void columns(int64_t first) const {
    const int64_t step = p.b_at.column_stride;
    const T* b = p.b + first * step;
    A lane[N][M][kLanes] = {};
    int64_t k = 0;
    for (; k + kLanes <= p.k; k += kLanes)
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) {
        __builtin_prefetch(b + (n + N) * step + k);
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m)
#pragma omp simd
          for (int j = 0; j < kLanes; ++j) lane[n][m][j] += p.a[m * p.k + k + j] * static_cast<A>(b[n * step + k + j]);
      }
    for (int n = 0; n < N; ++n)
      for (int m = 0; m < M; ++m) {
        for (int64_t rest = k; rest < p.k; ++rest) lane[n][m][0] += p.a[m * p.k + rest] * static_cast<A>(b[n * step + rest]);
        A sum = 0;
        for (int j = 0; j < kLanes; ++j) sum += lane[n][m][j];
        p.store(m, first + n, sum);
      }
  }
};

// b_at.column_stride is 1.
template <int M, class T> struct AlongN {
  using A = Accumulator<T>;
  static constexpr int kStrip = (M > 1 ? 128 : 256) / sizeof(A);
  Rows<M, T> p;

  HD void operator()(int64_t begin, int64_t end) const {
    int64_t column = begin;
    for (; column + kStrip <= end; column += kStrip) strip<kStrip>(column);
    for (; column < end; ++column) strip<1>(column);
  }
  template <int N> HD void strip(int64_t column) const {
    const T* b = p.b + column;
    A sum[M][N] = {};
    for (int64_t k = 0; k < p.k; ++k)
#pragma GCC unroll 4
      for (int m = 0; m < M; ++m)
#pragma omp simd
        for (int j = 0; j < N; ++j) sum[m][j] += p.a[m * p.k + k] * static_cast<A>(b[k * p.b_at.row_stride + j]);
    for (int m = 0; m < M; ++m)
      for (int j = 0; j < N; ++j) p.store(m, column + j, sum[m][j]);
  }
};

// a of the whole batch, dense, M rows each.
template <int M, class T> Tensor pack(const Gemm& g) {
  using A = Accumulator<T>;
  const Tensor packed = Tensor({g.batch, M, g.k}, dtype_of<A>);
  if (is_dry_run()) return packed;
  A* target = packed.data<A>();
  for (int64_t z = 0; z < g.batch; ++z)
    for (int64_t m = 0; m < M; ++m) {
      const T* from = static_cast<const T*>(g.a) + z * g.a_at.batch_stride + m * g.a_at.row_stride;
      for (int64_t k = 0; k < g.k; ++k) *target++ = m < g.m ? static_cast<A>(from[k * g.a_at.column_stride]) : A(0);
    }
  return packed;
}

template <int M, class T> void multiply(const Gemm& g) {
  using A = Accumulator<T>;
  const Tensor a = pack<M, T>(g);
  const int64_t column_bytes = std::max<int64_t>(1, g.k * static_cast<int64_t>(sizeof(T)));
  const int64_t columns = std::max<int64_t>(64, kChunkBytes / column_bytes / 64 * 64), chunks = (g.n + columns - 1) / columns;
  const int64_t grain = std::max<int64_t>(1, kChunkBytes / (std::min(columns, g.n) * column_bytes));
  const int64_t c_size = g.c_f32 ? 4 : size_of(g.dtype);
  parallel_for(g.batch * chunks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t z = chunk / chunks, first = chunk % chunks * columns, last = std::min(g.n, first + columns);
      const Rows<M, T> p{g.m, g.k, a.data<A>() + z * M * g.k, static_cast<const T*>(g.b) + z * g.b_at.batch_stride,
          static_cast<const T*>(g.bias_n), static_cast<char*>(g.c) + z * g.c_at.batch_stride * c_size, g.b_at, g.c_at, g.accumulate,
          g.c_f32};
      g.b_at.row_stride == 1 ? run_vectorized(AlongK<M, T>{p}, first, last) : run_vectorized(AlongN<M, T>{p}, first, last);
    }
  });
}

template <class T> void multiply(const Gemm& g) { g.m == 1 ? multiply<1, T>(g) : multiply<kFewRows, T>(g); }

}  // namespace

bool gemm_few_rows(const Gemm& g) {
  if (g.m > (g.dtype == Dtype::bf16 ? 1 : kFewRows) || (g.b_at.row_stride != 1 && g.b_at.column_stride != 1)) return false;
  switch (g.dtype) {
    case Dtype::f32: multiply<float>(g); break;
    case Dtype::f64: multiply<double>(g); break;
    default: multiply<1, bf16>(g);
  }
  return true;
}

}  // namespace ricci
