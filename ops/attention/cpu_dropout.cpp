// Dropout of a block of weights on the CPU.
#include "cuda/isa.h"
#include "ops/attention/cpu_block.h"

namespace ricci::attention_kernels {
namespace {

template <class A> struct DropWeights {
  Tile tile;
  WeightDropout dropout;
  int64_t head;
  A* w;
  HD void operator()(int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t keys = tile.keys(), row = dropout.row(head, tile.t0 + i, tile.context) + tile.s0;
#pragma omp simd
      for (int64_t j = 0; j < keys; ++j) w[i * kBlock + j] *= dropout.factor<A>(row + j);
    }
  }
};

}  // namespace

template <class A> void drop_weights(const Tile& tile, const WeightDropout& dropout, int64_t head, A* w_ij) {
  if (dropout.active()) run_vectorized(DropWeights<A>{tile, dropout, head, w_ij}, 0, tile.queries());
}

template void drop_weights(const Tile&, const WeightDropout&, int64_t, float*);
template void drop_weights(const Tile&, const WeightDropout&, int64_t, double*);

}  // namespace ricci::attention_kernels
