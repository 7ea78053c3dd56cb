// Dropout of a block of weights on the CPU. One block of the random generator has the numbers of four neighbouring keys; where
// a query's keys begin within such a block differs from query to query.
#include "core/cpu/isa.h"
#include "ops/attention/cpu/block.h"

namespace ricci::attention_kernels {
namespace {

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

template <class A> void weight_factors(const Tile& tile, const Problem& problem, int64_t head, A* f_ij) {
  run_vectorized(WeightFactors<A>{tile, problem, head, f_ij}, 0, tile.queries());
}

template <class A> void multiply_weights(const Tile& tile, const A* f_ij, A* w_ij) {
  run_vectorized(MultiplyWeights<A>{tile, f_ij, w_ij}, 0, tile.queries());
}

template void weight_factors(const Tile&, const Problem&, int64_t, float*);
template void weight_factors(const Tile&, const Problem&, int64_t, double*);
template void multiply_weights(const Tile&, const float*, float*);
template void multiply_weights(const Tile&, const double*, double*);

}  // namespace ricci::attention_kernels
