// A thread block's walks (walk.h) over the rows that it has in shared memory, three levels at a time. A team walks over the rows of a
// class. Where there are fewer classes than teams, several teams share a class, each with a stretch of its rows.
#pragma once
#include "ops/shift_and_sum/gpu/tile.h"
#include "ops/shift_and_sum/walk.h"

namespace ricci::shift_and_sum_kernels {

// The shares of the teams in the rows of 2^q classes.
struct Stretches {
  int held, classes, per_class, rows;  // rows: of a stretch, a multiple of eight

  __device__ Stretches(int q, int held_rows, int teams)
      : held(held_rows), classes(1 << q), per_class(classes < teams ? teams / classes : 1) {
    const int longest = (held + classes - 1) / classes;
    rows = ((longest + per_class - 1) / per_class + kWalkRows - 1) / kWalkRows * kWalkRows;
  }
  __device__ int of_class(int m) const { return m < held ? (held - m + classes - 1) / classes : 0; }
};

// Shared by all walks of a block.
template <class T> struct BlockWalk {
  using A = Accumulator<T>;
  const Problem& problem;
  const Part& part;
  const Place& place;
  int columns;
  uint32_t active;
  const T* c;

  // The coefficients of level q of the part at row m of those that are held.
  __device__ const T* coefficients(int q, int m) const {
    const int64_t row = (place.sequence * problem.positions + place.position(part, m)) * problem.heads + place.head;
    return c + row * problem.levels + part.first + q;
  }
  __device__ int64_t coefficient_row(int q) const { return problem.coefficients() * part.step() << q; }

  // Calls begin(m, first, end) and walk(m, first, end) for the rows first .. end - 1 of class m that are the thread's. A walk that
  // begins within a class first reads rows in front of it, which another team may be about to write: `begin` does that before any
  // walk stores.
  template <class Begin, class Walk> __device__ void each(int q, const Begin& begin, const Walk& walk) const {
    const Team team(columns);
    const Stretches stretches(q, place.rows(), team.teams);
    if (stretches.per_class == 1) {
      for (int m = team.number; m < stretches.classes; m += team.teams) {
        begin(m, 0, stretches.of_class(m));
        walk(m, 0, stretches.of_class(m));
      }
    } else {
      const int m = team.number % stretches.classes, first = team.number / stretches.classes * stretches.rows, all = stretches.of_class(m);
      const int end = first + stretches.rows < all ? first + stretches.rows : all;
      if (first < end) begin(m, first, end);
      __syncthreads();
      if (first < end) walk(m, first, end);
    }
    __syncthreads();
  }
};

// Every 2^q-th row that is held, from row m on.
template <class T> struct ForwardRows {
  using A = Accumulator<T>;
  using V = Quad<A>;
  const A* from;
  A* to;
  int row;
  const T* c;
  int64_t c_row;
  uint32_t active_levels;

  __device__ ForwardRows(const BlockWalk<T>& of, int q, int m, const A* from_, A* to_)
      : from(from_ + m * of.columns + Team(of.columns).column),
        to(to_ + m * of.columns + Team(of.columns).column),
        row(of.columns << q),
        c(of.coefficients(q, m)),
        c_row(of.coefficient_row(q)),
        active_levels(of.active >> q & 7) {}
  __device__ V values(int64_t i) const { return *reinterpret_cast<const V*>(from + i * row); }
  __device__ A coefficient(int64_t i, int l) const { return A(c[i * c_row + l]); }
  __device__ bool active(int l) const { return active_levels >> l & 1; }
  __device__ void store(int64_t i, const V& v) const { *reinterpret_cast<V*>(to + i * row) = v; }
};

// The levels q, q + 1, q + 2 of the part; `to` may be `from`.
template <class T> __device__ inline void walk_forward(const BlockWalk<T>& of, int q, const Accumulator<T>* from, Accumulator<T>* to) {
  ForwardWalk<ForwardRows<T>> along;
  const auto begin = [&](int m, int first, int) {
    along.begin();
    if (first > 0) along.template block<false>(ForwardRows<T>(of, q, m, from, to), first - kWalkRows, kWalkRows);
  };
  const auto walk = [&](int m, int first, int end) {
    const ForwardRows<T> io(of, q, m, from, to);
    for (int i = first; i < end; i += kWalkRows) along.template block<true>(io, i, end - i);
  };
  of.each(q, begin, walk);
}

// The values, and the gradient in place. The sums over a team's columns go to `partial` (problem.h).
template <class T> struct BackwardRows : ForwardRows<T> {
  using typename ForwardRows<T>::A;
  using typename ForwardRows<T>::V;
  A* dc;
  int64_t dc_row;
  int first_row, classes, begin, end, levels;  // row i is first_row + i classes; stored from begin to end - 1

  __device__ BackwardRows(const BlockWalk<T>& of, int q, int m, const A* values, A* gradient, A* partial)
      : ForwardRows<T>(of, q, m, values, gradient),
        dc(partial + partial_at(of.problem, of.place.slice, of.place.sequence, of.place.position(of.part, m), of.place.head) +
            of.part.first + q),
        dc_row(of.problem.heads * of.problem.used * of.part.step() << q),
        first_row(m),
        classes(1 << q),
        begin(static_cast<int>(of.place.tile.begin - of.place.tile.held_first)),
        end(static_cast<int>(of.place.tile.end - of.place.tile.held_first)),
        levels(of.part.levels - q) {}
  __device__ V gradients(int64_t i) const { return *reinterpret_cast<const V*>(this->to + i * this->row); }

  __device__ void add(int64_t i, int l, const V& g, const V& v) const {
    if (l >= levels) return;
    const int size = this->row / classes / kQuad, lane = static_cast<int>(threadIdx.x % 32),
              row = first_row + static_cast<int>(i) * classes;
    const unsigned team = (size == 32 ? ~0u : (1u << size) - 1) << lane / size * size;
    A sum = this->active(l) ? dot(g, v) : A(0);
    for (int distance = size / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(team, sum, distance);
    if (lane % size == 0 && row >= begin && row < end) dc[i * dc_row + l] = sum;
  }
};

template <class T>
__device__ inline void walk_backward(
    const BlockWalk<T>& of, int q, const Accumulator<T>* values, Accumulator<T>* gradient, Accumulator<T>* partial) {
  BackwardWalk<BackwardRows<T>> along;
  const auto rows_of_class = [&](int m) { return (of.place.rows() - m + (1 << q) - 1) >> q; };
  const auto begin = [&](int m, int first, int end) {
    along.begin();
    if (first < end)
      along.template block<false>(
          BackwardRows<T>(of, q, m, values, gradient, partial), (end + kWalkRows - 1) / kWalkRows * kWalkRows, rows_of_class(m));
  };
  const auto walk = [&](int m, int first, int end) {
    const BackwardRows<T> io(of, q, m, values, gradient, partial);
    for (int i = (end - 1) / kWalkRows * kWalkRows; i >= first; i -= kWalkRows) along.template block<true>(io, i, rows_of_class(m));
  };
  of.each(q, begin, walk);
}

}  // namespace ricci::shift_and_sum_kernels
