// The division of a step among ranks. Its P micro-batches form V leaves, whose gradients are added in a fixed tree
// (autograd/gradient_layout.h): leaf v sums the micro-batches [P v / V, P (v + 1) / V), and rank r of R computes the leaves
// [V r / R, V (r + 1) / R). So the bits of a step depend on P and V, and not on R.
#pragma once
#include "core/range.h"

namespace ricci {

struct Share {
  int64_t all_micro_batches = 1, max_ranks = 1;  // P and V of the step, V <= P
  Range leaves{0, max_ranks};                    // this rank's

  static Share of_rank(int64_t micro_batches, int64_t max_ranks, int64_t rank = 0, int64_t ranks = 1) {
    return {micro_batches, max_ranks, {max_ranks * rank / ranks, max_ranks * (rank + 1) / ranks}};
  }
  Range micro_batches(int64_t leaf) const { return {all_micro_batches * leaf / max_ranks, all_micro_batches * (leaf + 1) / max_ranks}; }
  Range micro_batches() const { return {micro_batches(leaves.lo).lo, micro_batches(leaves.hi).lo}; }  // all leaves of this rank
};

}  // namespace ricci
