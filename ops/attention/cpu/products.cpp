// Products of the blocks, C_ij (+)= sum_p A_ip B_pj, and dropout of the weights. A few rows of C, two vectors wide, stay in registers
// during the sum over p: this saves a load and a store per product. Columns of C and terms of the sums that are not visible are skipped.
#include "core/cpu/isa.h"
#include "core/cpu/vectors.h"
#include "ops/attention/cpu/block.h"

namespace ricci::attention_kernels {
namespace {

// The rows of B and C are contiguous; A is read along its rows or its columns.
template <class A> struct Factors {
  const A* a;
  int64_t a_row, a_p;
  const A* b;
  int64_t b_p;
  A* c;
  int64_t c_row;
};

template <class R, int n, class A> HD void add_tile(const Factors<A>& factors, int64_t i, int64_t j, Interval p, bool add) {
  using Vector = typename R::Vector;
  const A *a = factors.a + i * factors.a_row, *b = factors.b + j;
  A* c = factors.c + i * factors.c_row + j;
  Vector sum[R::kRows][n];
#pragma GCC unroll 8
  for (int r = 0; r < R::kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < n; ++v) {
      sum[r][v] = Vector{};
      if (add) R::load(c + r * factors.c_row + v * R::kLanes, sum[r][v]);
    }
  for (int64_t q = p.begin; q < p.end; ++q) {
    Vector b_q[n];
#pragma GCC unroll 2
    for (int v = 0; v < n; ++v) R::load(b + q * factors.b_p + v * R::kLanes, b_q[v]);
#pragma GCC unroll 8
    for (int r = 0; r < R::kRows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < n; ++v) sum[r][v] += a[r * factors.a_row + q * factors.a_p] * b_q[v];
  }
#pragma GCC unroll 8
  for (int r = 0; r < R::kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < n; ++v) R::store(c + r * factors.c_row + v * R::kLanes, sum[r][v]);
}

enum class Form : uint8_t { visible, over_keys, over_queries };

template <class A, int Bytes> struct Product {
  using R = Vectors<A, Bytes>;
  Form form;
  Tile tile;
  int64_t width;
  Factors<A> factors;

  struct Part {
    Interval columns, p;
  };
  HD Part part(int64_t i) const {
    if (form == Form::visible) return {tile.columns_of(i), {0, width}};
    return {{0, round_up(width, kColumns)}, form == Form::over_keys ? tile.keys_of(i, R::kRows) : tile.queries_of(i, R::kRows)};
  }
  // Computes the rows begin .. end - 1 of C, in full tiles.
  HD void operator()(int64_t begin, int64_t end) const {
    constexpr int n = R::kLanes;
    for (int64_t i = begin; i < end; i += R::kRows) {
      const Part needed = part(i);
      int64_t j = needed.columns.begin;
      for (; j + 2 * n <= needed.columns.end; j += 2 * n) add_tile<R, 2>(factors, i, j, needed.p, form != Form::visible);
      for (; j < needed.columns.end; j += n) add_tile<R, 1>(factors, i, j, needed.p, form != Form::visible);
    }
  }
};

// Stores the factors of dropout. A block of the random generator contains the numbers of four adjacent keys; a query's keys can start
// anywhere in it.
template <class A> struct WeightFactors {
  Tile tile;
  Problem problem;
  int64_t head;
  A* f;
  HD void operator()(int64_t begin, int64_t end) const {
    const WeightDropout& dropout = problem.dropout;
    const Philox random = dropout.random.philox();
    uint32_t words[kBlock + 4];
    for (int64_t i = begin; i < end; ++i) {
      const Interval columns = tile.columns_of(i);
      const int64_t first = problem.weight(head, tile.t0 + i) + tile.j0 + columns.begin;
      const int n = static_cast<int>(columns.end - columns.begin), offset = static_cast<int>(first % 4), blocks = (offset + n + 3) / 4;
#pragma omp simd
      for (int q = 0; q < blocks; ++q) {
        const Philox::Block block = random.block(static_cast<uint64_t>(first / 4 + q));
        words[4 * q] = block.v[0];
        words[4 * q + 1] = block.v[1];
        words[4 * q + 2] = block.v[2];
        words[4 * q + 3] = block.v[3];
      }
      A* f_j = f + i * kBlock + columns.begin;
#pragma omp simd
      for (int j = 0; j < n; ++j) f_j[j] = words[offset + j] < dropout.dropped_below ? A(0) : A(dropout.keep_factor);
    }
  }
};

template <class A> struct MultiplyWeights {
  Tile tile;
  const A* f;
  A* w;
  HD void operator()(int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end; ++i) {
      const Interval columns = tile.columns_of(i);
#pragma omp simd
      for (int64_t j = columns.begin; j < columns.end; ++j) w[i * kBlock + j] *= f[i * kBlock + j];
    }
  }
};

template <class A> void product(Form form, const Tile& tile, int64_t rows, int64_t width, const Factors<A>& factors) {
  with_vectors([&](auto bytes) { run_vectorized(Product<A, bytes()>{form, tile, width, factors}, 0, rows); });
}

}  // namespace

template <class A> void multiply(const Tile& tile, const A* a, int64_t row, const A* b_xj, int64_t width, A* s_ij) {
  product<A>(Form::visible, tile, tile.queries(), width, {a, row, 1, b_xj, kBlock, s_ij, kBlock});
}

template <class A> void add_over_keys(const Tile& tile, const A* w_ij, const A* b, int64_t row, int64_t width, A* c) {
  product<A>(Form::over_keys, tile, tile.queries(), width, {w_ij, kBlock, 1, b, row, c, row});
}

template <class A> void add_over_queries(const Tile& tile, const A* w_ij, const A* b, int64_t row, int64_t width, A* c) {
  product<A>(Form::over_queries, tile, tile.keys(), width, {w_ij, 1, kBlock, b, row, c, row});
}

template <class A> void weight_factors(const Tile& tile, const Problem& problem, int64_t head, A* f_ij) {
  run_vectorized(WeightFactors<A>{tile, problem, head, f_ij}, 0, tile.queries());
}

template <class A> void multiply_weights(const Tile& tile, const A* f_ij, A* w_ij) {
  run_vectorized(MultiplyWeights<A>{tile, f_ij, w_ij}, 0, tile.queries());
}

#define FOR_SUMS_IN(A)                                                                   \
  template void multiply(const Tile&, const A*, int64_t, const A*, int64_t, A*);         \
  template void add_over_keys(const Tile&, const A*, const A*, int64_t, int64_t, A*);    \
  template void add_over_queries(const Tile&, const A*, const A*, int64_t, int64_t, A*); \
  template void weight_factors(const Tile&, const Problem&, int64_t, A*);                \
  template void multiply_weights(const Tile&, const A*, A*);
FOR_SUMS_IN(float)
FOR_SUMS_IN(double)

}  // namespace ricci::attention_kernels
