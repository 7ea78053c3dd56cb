// A thread block's walks over its rows in shared memory. A half-warp walks over the rows of a class. If a walk has fewer classes than the
// block has half-warps, half-warps share a class, each with a stretch of its rows.
// The two half-warps of a warp take the same branches, as the sums over lanes need all lanes: both go through the larger number of
// blocks of eight rows, and a block is Around::inside only if it is inside for both.
#pragma once
#include "ops/shift_and_sum/gpu/tile.h"
#include "ops/shift_and_sum/gpu/walks.h"

namespace ricci::shift_and_sum_kernels {

__device__ inline bool of_both(bool holds) { return __all_sync(~0u, holds); }

// Shared by all walks of a block.
template <class T> struct BlockWalk {
  using A = Accumulator<T>;
  const Problem& problem;
  const Part& part;
  const Place& place;
  uint32_t active;
  const A* c;  // as copy_coefficients() arranges them
  A* partial;  // for the backward pass: of the block's sequence, head and slice (problem.h)

  template <int q> __device__ int rows_of_class(int m) const { return m < place.rows ? (place.rows - m + (1 << q) - 1) >> q : 0; }
  template <int q> __device__ ClassRows<A, q> rows(int m, const A* values, A* results) const {
    const int first = m * kColumns + static_cast<int>(threadIdx.x) % kLanes * 2;
    const A* const of_walk = c + q / kWalkLevels * place.rows * kWalkLevels;
    return {reinterpret_cast<const Pair<A>*>(values + first), reinterpret_cast<Pair<A>*>(results + first), of_walk + m * kWalkLevels,
        rows_of_class<q>(m)};
  }

  // Calls begin(m, first, blocks) and walk(m, first, blocks) for the half-warp's rows of class m: `blocks` blocks of eight from row `first`
  // on. A walk that starts within a class first reads rows before it, and another half-warp might be about to write them. So `begin` reads
  // them before any walk stores.
  template <int q, class Begin, class Walk> __device__ void each(const Begin& begin, const Walk& walk) const {
    constexpr int classes = 1 << q;
    const int half = static_cast<int>(threadIdx.x) / kLanes, halves = static_cast<int>(blockDim.x) / kLanes;  // `halves` is a power of two
    const int per_class = classes < halves ? halves >> q : 1, longest = rows_of_class<q>(0);
    int of_stretch = (longest + per_class * kWalkRows - 1) / (per_class * kWalkRows);  // blocks of eight rows
    // The two halves must not be a multiple of 32 rows apart: their coefficients would be in the same bank of shared memory.
    if (q == 0 && of_stretch % 4 == 0) ++of_stretch;
    const int stretch = of_stretch * kWalkRows, first = (half >> q) * stretch;
    for (int before = 0; before < classes; before += halves) {
      const int m = before + half % classes, own = min(stretch, rows_of_class<q>(m) - first);
      const int blocks = __shfl_sync(~0u, (own + kWalkRows - 1) / kWalkRows, 0);  // the second half-warp does not have more
      if (blocks > 0) begin(m, first, blocks);
      if (per_class > 1) __syncthreads();
      if (blocks > 0) walk(m, first, blocks);
    }
    __syncthreads();
  }
};

// Applies levels q, q + 1 and q + 2 of the part; `target` can be equal to `source`.
template <int q, class T>
__device__ inline void walk_forward(const BlockWalk<T>& block, const Accumulator<T>* source, Accumulator<T>* target) {
  ForwardWalk<Accumulator<T>, q> along;
  const auto begin = [&](int m, int first, int) {
    along.begin();
    const auto io = block.template rows<q>(m, source, target);
    if (of_both(first == 0)) return;
    if (of_both(first > 0 && first <= io.rows)) along.template block<Around::inside, false>(io, first - kWalkRows);
    else along.template block<Around::edge, false>(io, first - kWalkRows);
  };
  const auto walk = [&](int m, int first, int blocks) {
    const auto io = block.template rows<q>(m, source, target);
    if (of_both(first == 0 && io.rows == kWalkRows)) return along.template block<Around::single, true>(io, 0);
    for (int base = first; blocks > 0; --blocks, base += kWalkRows) {
      if (of_both(base + kWalkRows <= io.rows)) along.template block<Around::inside, true>(io, base);
      else along.template block<Around::edge, true>(io, base);
    }
  };
  block.template each<q>(begin, walk);
}

// Stores a lane's sums after a block, at the address of the lane's row in the class.
template <class T, int q> struct CoefficientGradient {
  using A = Accumulator<T>;
  A* dc;            // row 0 of the block at base 0
  int64_t row;      // the distance from a row of the class to the next
  int from, count;  // the row's index at base 0, relative to the first stored row; the number of stored rows, 0 in a lane that stores none
  int levels;
  uint32_t active;

  __device__ CoefficientGradient(const BlockWalk<T>& block, int m)
      : row(block.problem.heads * block.problem.used * block.part.step() << q),
        from(m + (LaneSums<A>::row() << q) - block.place.begin),
        count(LaneSums<A>::is_first() ? block.place.end - block.place.begin : 0),
        levels(block.part.levels - q),
        active(block.active >> q) {
    const int64_t position = block.place.position(block.part, m + (LaneSums<A>::row() << q));
    dc = block.partial + position * block.problem.heads * block.problem.used + block.part.first + q;
  }
  __device__ void store(int base, const LaneSums<A>& sums) const {
    if (static_cast<unsigned>(from + (base << q)) >= static_cast<unsigned>(count)) return;
    for (int l = 0; l < kWalkLevels; ++l)
      if (l < levels) dc[base * row + l] = active >> l & 1 ? sums.sum(l) : A(0);
  }
};

// Walks backward over the values, and over the gradient in place. Writes the sums over the columns to `partial`.
template <int q, class T>
__device__ inline void walk_backward(const BlockWalk<T>& block, const Accumulator<T>* values, Accumulator<T>* gradient) {
  BackwardWalk<Accumulator<T>, q> along;
  const auto inside = [](int base, int rows) { return of_both(base >= kWalkRows && base + kWalkRows + 4 <= rows); };
  const auto begin = [&](int m, int first, int blocks) {
    const auto io = block.template rows<q>(m, values, gradient);
    if (of_both(first == 0 && io.rows == kWalkRows)) return;
    const int base = first + blocks * kWalkRows;
    along.begin();
    if (inside(base, io.rows)) along.template block<Around::inside, false>(io, base);
    else along.template block<Around::edge, false>(io, base);
  };
  const auto walk = [&](int m, int first, int blocks) {
    const auto io = block.template rows<q>(m, values, gradient);
    const CoefficientGradient<T, q> dc(block, m);
    if (of_both(first == 0 && io.rows == kWalkRows)) {
      along.template block<Around::after_single, false>(io, kWalkRows);
      along.template block<Around::single, true>(io, 0);
      return dc.store(0, along.dc);
    }
    for (int base = first + (blocks - 1) * kWalkRows; blocks > 0; --blocks, base -= kWalkRows) {
      if (inside(base, io.rows)) along.template block<Around::inside, true>(io, base);
      else along.template block<Around::edge, true>(io, base);
      dc.store(base, along.dc);
    }
  };
  block.template each<q>(begin, walk);
}

}  // namespace ricci::shift_and_sum_kernels
