// A thread block's walks over the rows that it has in shared memory. A warp walks over the rows of a class. Where there are fewer classes
// than warps, several warps share a class, each with a stretch of its rows.
#pragma once
#include "ops/shift_and_sum/gpu/tile.h"
#include "ops/shift_and_sum/gpu/walks.h"

namespace ricci::shift_and_sum_kernels {

// Shared by all walks of a block.
template <class T> struct BlockWalk {
  using A = Accumulator<T>;
  const Problem& problem;
  const Part& part;
  const Place& place;
  uint32_t active;
  const A* c;       // as copy_coefficients() puts them
  A* partial;       // the backward's: of the block's sequence, head and slice (problem.h)
  int warp, warps;  // warps is a power of two

  // Every lane has lane 0's number of the warp: so the compiler knows that all lanes take the same branches.
  __device__ static int number_of_warp() { return __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 32, 0); }
  __device__ static int lane() { return static_cast<int>(threadIdx.x % 32); }

  template <int q> __device__ int rows_of_class(int m) const { return m < place.rows() ? (place.rows() - m + (1 << q) - 1) >> q : 0; }
  template <int q> __device__ ClassRows<A, q> rows(int m, const A* values, A* results) const {
    const A* const of_walk = c + q / kWalkLevels * place.rows() * kCoefficients;
    return {values + m * kColumns + lane(), results + m * kColumns + lane(), of_walk + m * kCoefficients, rows_of_class<q>(m)};
  }

  // Calls begin(m, first, end) and walk(m, first, end) for the rows first .. end - 1 of class m that are the warp's. A walk that
  // begins within a class first reads rows before it, which another warp may be about to write: `begin` does that before any
  // walk stores.
  template <int q, class Begin, class Walk> __device__ void each(const Begin& begin, const Walk& walk) const {
    constexpr int classes = 1 << q;
    const int per_class = classes < warps ? warps >> q : 1, longest = rows_of_class<q>(0);
    const int rounding = per_class * kWalkRows, stretch = (longest + rounding - 1) / rounding * kWalkRows;
    for (int m = warp % classes; m < classes; m += warps) {
      const int first = (warp >> q) * stretch, end = min(first + stretch, rows_of_class<q>(m));
      if (first < end) begin(m, first, end);
      if (per_class > 1) __syncthreads();
      if (first < end) walk(m, first, end);
    }
    __syncthreads();
  }
};

// The levels q, q + 1, q + 2 of the part; `target` may be `source`.
template <int q, class T>
__device__ inline void walk_forward(const BlockWalk<T>& block, const Accumulator<T>* source, Accumulator<T>* target) {
  ForwardWalk<Accumulator<T>, q> along;
  const auto begin = [&](int m, int first, int) {
    along.begin();
    if (first > 0) along.template block<Around::inside, false>(block.template rows<q>(m, source, target), first - kWalkRows);
  };
  const auto walk = [&](int m, int first, int end) {
    const auto io = block.template rows<q>(m, source, target);
    if (io.rows == kWalkRows) return along.template block<Around::alone, true>(io, 0);
    int i = first;
    for (; i + kWalkRows <= end; i += kWalkRows) along.template block<Around::inside, true>(io, i);
    if (i < end) along.template block<Around::edge, true>(io, i);
  };
  block.template each<q>(begin, walk);
}

// Where a lane stores the sum that it has after a block: of its row in the class and its level.
template <class T, int q> struct CoefficientGradient {
  using A = Accumulator<T>;
  A* dc;        // row 0 of the block at base 0
  int64_t row;  // from a row of the class to the next
  int first, begin, end;
  bool stores, active;

  __device__ CoefficientGradient(const BlockWalk<T>& block, int m)
      : row(block.problem.heads * block.problem.used * block.part.step() << q),
        first(m + (LaneSums<A>::row() << q)),
        begin(block.place.begin()),
        end(block.place.end()),
        stores(LaneSums<A>::is_first() && q + LaneSums<A>::level() < block.part.levels),
        active(block.active >> (q + LaneSums<A>::level()) & 1) {
    const int64_t before = block.place.position(block.part, first) * block.problem.heads * block.problem.used;
    dc = block.partial + before + block.part.first + q + LaneSums<A>::level();
  }
  __device__ void store(int base, A sum) const {
    const int position = first + (base << q);
    if (stores && position >= begin && position < end) dc[base * row] = active ? sum : A(0);
  }
};

// The values, and the gradient in place. The sums over the columns go to `partial`.
template <int q, class T>
__device__ inline void walk_backward(const BlockWalk<T>& block, const Accumulator<T>* values, Accumulator<T>* gradient) {
  BackwardWalk<Accumulator<T>, q> along;
  const auto inside = [](int base, int rows) { return base >= kWalkRows && base + kWalkRows + 4 <= rows; };
  const auto begin = [&](int m, int, int end) {
    const auto io = block.template rows<q>(m, values, gradient);
    if (io.rows == kWalkRows) return;
    const int base = (end + kWalkRows - 1) / kWalkRows * kWalkRows;
    along.begin();
    if (inside(base, io.rows)) along.template block<Around::inside, false>(io, base);
    else along.template block<Around::edge, false>(io, base);
  };
  const auto walk = [&](int m, int first, int end) {
    const auto io = block.template rows<q>(m, values, gradient);
    const CoefficientGradient<T, q> dc(block, m);
    if (io.rows == kWalkRows) {
      along.template block<Around::after_alone, false>(io, kWalkRows);
      along.template block<Around::alone, true>(io, 0);
      return dc.store(0, along.dc.sum());
    }
    for (int base = (end - 1) / kWalkRows * kWalkRows; base >= first; base -= kWalkRows) {
      if (inside(base, io.rows)) along.template block<Around::inside, true>(io, base);
      else along.template block<Around::edge, true>(io, base);
      dc.store(base, along.dc.sum());
    }
  };
  block.template each<q>(begin, walk);
}

}  // namespace ricci::shift_and_sum_kernels
