// The weights of a block, row by row, the columns in vectors: the softmax of scores in the forward and in the backward, and dropout.
#include "core/cpu/isa.h"
#include "core/cpu/vectors.h"
#include "cuda/math.h"
#include "ops/attention/cpu/block.h"

namespace ricci::attention_kernels {
namespace {

template <class A> constexpr A kLowest = -A(__builtin_huge_val());

// The columns of one row: computed from begin to end - 1, visible from first to last - 1. The numbers are ints, which fit the
// lanes of a vector.
struct Columns {
  int begin, end, first, last;
  HD Columns(const Tile& tile, int64_t i) {
    const Interval columns = tile.columns_of(i), keys = tile.keys_of(i, 1);
    begin = static_cast<int>(columns.begin);
    end = static_cast<int>(columns.end);
    first = static_cast<int>(keys.begin);
    last = static_cast<int>(keys.end);
  }
  HD bool sees(int j) const { return (j >= first) & (j < last); }
};

template <class A, int Bytes> struct ForwardSoftmax {
  using V = Vectors<A, Bytes>;
  Tile tile;
  A *s, *m, *l, *o;
  int64_t row, width;

  // Each step runs over all rows before the next begins: the rows of one step do not wait for each other, and the processor
  // works on several at once.
  HD void operator()(int64_t begin, int64_t end) const {
    A next[kBlock];
    for (int64_t i = begin; i < end; ++i) next[i] = max_with(m[i], s + i * kBlock, Columns(tile, i));
    for (int64_t i = begin; i < end; ++i) exponentials(s + i * kBlock, Columns(tile, i), next[i] > kLowest<A> ? next[i] : A(0));
    for (int64_t i = begin; i < end; ++i) {
      if (next[i] > m[i] && l[i] != 0) rescale(i, math::exp(m[i] - next[i]));
      m[i] = next[i];
      l[i] += sum(s + i * kBlock, Columns(tile, i));
    }
  }
  HD static A max_with(A largest, const A* s_j, Columns columns) {
#pragma omp simd reduction(max : largest)
    for (int j = columns.begin; j < columns.end; ++j) largest = max(largest, columns.sees(j) ? s_j[j] : kLowest<A>);
    return largest;
  }
  HD static void exponentials(A* s_j, Columns columns, A shift) {
#pragma omp simd
    for (int j = columns.begin; j < columns.end; ++j) s_j[j] = columns.sees(j) ? math::exp(s_j[j] - shift) : A(0);
  }
  HD static A sum(const A* p_j, Columns columns) {
    typename V::Vector total{}, next;
    for (int j = columns.begin; j < columns.end; j += V::kLanes) {
      V::load(p_j + j, next);
      total += next;
    }
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

// One block of the random generator has the numbers of four neighbouring keys; where a query's keys begin within such a block differs
// from query to query.
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
      for (int j = 0; j < n; ++j) f_j[j] = words[offset + j] < dropout.dropped_below ? A(0) : A(dropout.scale);
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

}  // namespace

template <class A> void forward_softmax(const Tile& tile, A* s_ij, A* m_i, A* l_i, A* o_ix, int64_t row, int64_t width) {
  with_vectors([&](auto bytes) { run_vectorized(ForwardSoftmax<A, bytes()>{tile, s_ij, m_i, l_i, o_ix, row, width}, 0, tile.queries()); });
}

template <class A> void backward_softmax(const Tile& tile, A* s_ij, A* dp_ij, const A* lse_i, const A* delta_i) {
  run_vectorized(BackwardSoftmax<A>{tile, s_ij, dp_ij, lse_i, delta_i}, 0, tile.queries());
}

template <class A> void weight_factors(const Tile& tile, const Problem& problem, int64_t head, A* f_ij) {
  run_vectorized(WeightFactors<A>{tile, problem, head, f_ij}, 0, tile.queries());
}

template <class A> void multiply_weights(const Tile& tile, const A* f_ij, A* w_ij) {
  run_vectorized(MultiplyWeights<A>{tile, f_ij, w_ij}, 0, tile.queries());
}

#define FOR_SUMS_IN(A)                                                          \
  template void forward_softmax(const Tile&, A*, A*, A*, A*, int64_t, int64_t); \
  template void backward_softmax(const Tile&, A*, A*, const A*, const A*);      \
  template void weight_factors(const Tile&, const Problem&, int64_t, A*);       \
  template void multiply_weights(const Tile&, const A*, A*);
FOR_SUMS_IN(float)
FOR_SUMS_IN(double)

}  // namespace ricci::attention_kernels
