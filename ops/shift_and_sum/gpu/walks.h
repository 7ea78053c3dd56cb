// The walks of walk.h on a GPU. A half-warp walks over 32 columns, two for each lane, in shared memory. Rings of rows are in registers. A
// block of eight rows is unrolled, so the slots of a ring and the addresses of rows are constants. All lanes of a half-warp are at the same
// row. The other half-warp is at a row of another class or stretch. Shared memory delivers 128 bytes per cycle: a pair of columns for every
// lane takes two cycles, the coefficients of both half-warps only one.
#pragma once
#include "cuda/seam.h"
#include "ops/shift_and_sum/kernels.h"

namespace ricci::shift_and_sum_kernels {

// Each of the 24 values of a lane is summed over the 16 lanes of its half-warp. One shuffle serves two values: a lane keeps one and sends
// the other to the lane at `distance`, and that lane does the opposite. So 24 sums need 24 shuffles, not 24 x 4.
template <class A> __device__ inline A merged(A of_lower, A of_upper, int distance) {
  const bool upper = threadIdx.x & static_cast<unsigned>(distance);
  return (upper ? of_upper : of_lower) + __shfl_xor_sync(~0u, upper ? of_lower : of_upper, distance);
}

// add() receives the values of a level at eight rows, from row 7 down to row 0. After that, sum(level) is the sum of the lane's row().
template <class A> struct LaneSums {
  A rows[kWalkLevels][kWalkRows];

  template <int u> __device__ void add(int level, A value) {
    A(&x)[kWalkRows] = rows[level];
    x[u] = value;
    if constexpr (u % 2 == 0) x[u] = merged(x[u], x[u + 1], 1);
    if constexpr (u % 4 == 0) x[u] = merged(x[u], x[u + 2], 2);
    if constexpr (u == 0) x[0] = merged(x[0], x[4], 4);
    if constexpr (u == 0) x[0] += __shfl_xor_sync(~0u, x[0], 8);
  }
  __device__ A sum(int level) const { return rows[level][0]; }
  __device__ static int row() { return static_cast<int>(threadIdx.x % kWalkRows); }
  // Two lanes hold the sums of a row.
  __device__ static bool is_first() { return (threadIdx.x & 8) == 0; }
};

// Two adjacent columns of a row.
template <class A> struct alignas(2 * sizeof(A)) Pair {
  A x, y;

  __device__ void add(A c, const Pair& v) {
    x += c * v.x;
    y += c * v.y;
  }
};
template <class A> __device__ inline A dot(const Pair<A>& g, const Pair<A>& v) { return g.x * v.x + g.y * v.y; }

// The rows that a block of eight depends on. inside: all of them exist. edge: each is checked. single: the class has exactly eight rows,
// and base is 0. after_single: the block that a backward walk processes before that block, and base is 8.
enum class Around { inside, edge, single, after_single };
// True if a class can have row base + offset.
template <Around kAround, int offset> HD constexpr bool can_have() {
  constexpr int row = offset + (kAround == Around::after_single ? kWalkRows : 0);
  return kAround == Around::inside || kAround == Around::edge || (row >= 0 && row < kWalkRows);
}

// Every 2^q-th of the rows held in shared memory, from row m on, at the lane's columns.
template <class A, int q> struct ClassRows {
  static constexpr int kRow = kLanes << q, kCoefficientRow = kWalkLevels << q;
  const Pair<A>* values_;
  Pair<A>* result;
  const A* c;
  int rows;  // in the class

  // True if row base + offset exists.
  template <Around kAround, int offset> __device__ bool has(int base) const {
    if constexpr (kAround == Around::edge) return static_cast<unsigned>(base + offset) < static_cast<unsigned>(rows);
    return can_have<kAround, offset>();
  }
  // A missing row is 0. The coefficient of level q + l is 0 if the row 2^l before it is missing.
  template <Around kAround, int offset> __device__ Pair<A> value(int base) const {
    return has<kAround, offset>(base) ? values_[(base + offset) * kRow] : Pair<A>{};
  }
  template <Around kAround, int offset> __device__ Pair<A> gradient(int base) const {
    return has<kAround, offset>(base) ? result[(base + offset) * kRow] : Pair<A>{};
  }
  template <Around kAround, int offset, int l> __device__ A coefficient(int base) const {
    return has<kAround, offset - (1 << l)>(base) && has<kAround, offset>(base) ? c[(base + offset) * kCoefficientRow + l] : A(0);
  }
  template <Around kAround, int offset> __device__ void store(int base, const Pair<A>& v) const {
    if (has<kAround, offset>(base)) result[(base + offset) * kRow] = v;
  }
};

template <class A, int q> struct ForwardWalk {
  using Io = ClassRows<A, q>;
  Pair<A> v0[kWalkRows], v1[kWalkRows], v2[kWalkRows];

  // Starts before the first row of a class, with all values 0.
  __device__ void begin() {
    for (int i = 0; i < kWalkRows; ++i) v0[i] = v1[i] = v2[i] = {};
  }
  // Processes the existing rows among base .. base + 7; base is a multiple of eight.
  template <Around kAround, bool kStore, int u = 0> __device__ void block(const Io& io, int base) {
    if constexpr (u < kWalkRows) {
      v0[u] = io.template value<kAround, u>(base);
      v1[u] = v0[u];
      if constexpr (can_have<kAround, u - 1>()) v1[u].add(io.template coefficient<kAround, u, 0>(base), v0[(u + 7) % 8]);
      v2[u] = v1[u];
      if constexpr (can_have<kAround, u - 2>()) v2[u].add(io.template coefficient<kAround, u, 1>(base), v1[(u + 6) % 8]);
      Pair<A> v3 = v2[u];
      if constexpr (can_have<kAround, u - 4>()) v3.add(io.template coefficient<kAround, u, 2>(base), v2[(u + 4) % 8]);
      if constexpr (kStore) io.template store<kAround, u>(base, v3);
      block<kAround, kStore, u + 1>(io, base);
    }
  }
};

// Walks from the last row to the first. The rows of v are up to seven rows before the rows of g: v0 is read at i - 7, v1 is computed at i -
// 6 and v2 at i - 4. The coefficients of levels 0 and 1 are read there, and kept until g reaches them. A row of g0 is stored after the
// reads for the next row: the compiler moves no read before a store.
template <class A, int q> struct BackwardWalk {
  using Io = ClassRows<A, q>;
  Pair<A> v0[kWalkRows], v1[kWalkRows], g0[kWalkRows], g1[kWalkRows], g2[kWalkRows], g3[kWalkRows];
  A c0[kWalkRows], c1[kWalkRows];
  LaneSums<A> dc;  // sums over the block

  // Starts after the last row of a class, with all gradients 0.
  __device__ void begin() {
    for (int i = 0; i < kWalkRows; ++i) {
      v0[i] = v1[i] = g1[i] = g2[i] = g3[i] = {};
      c0[i] = c1[i] = 0;
    }
  }
  // Processes the existing rows among base + 7 .. base.
  template <Around kAround, bool kStore, int u = kWalkRows - 1> __device__ void block(const Io& io, int base) {
    if constexpr (u >= 0) {
      const Pair<A> v2 = walk_values<kAround, u>(io, base);
      g3[u] = io.template gradient<kAround, u>(base);
      const A c2 = io.template coefficient<kAround, u + 4, 2>(base);
      if constexpr (kStore && u + 1 < kWalkRows) io.template store<kAround, u + 1>(base, g0[u + 1]);
      g2[u] = g3[u];
      if constexpr (can_have<kAround, u + 4>()) g2[u].add(c2, g3[(u + 4) % 8]);
      g1[u] = g2[u];
      if constexpr (can_have<kAround, u + 2>()) g1[u].add(c1[(u + 2) % 8], g2[(u + 2) % 8]);
      if constexpr (kStore) {
        g0[u] = g1[u];
        if constexpr (can_have<kAround, u + 1>()) g0[u].add(c0[(u + 1) % 8], g1[(u + 1) % 8]);
        dc.template add<u>(0, product<kAround, u - 1>(g1[u], v0[(u + 7) % 8]));
        dc.template add<u>(1, product<kAround, u - 2>(g2[u], v1[(u + 6) % 8]));
        dc.template add<u>(2, product<kAround, u - 4>(g3[u], v2));
        if constexpr (u == 0) io.template store<kAround, u>(base, g0[u]);
      }
      block<kAround, kStore, u - 1>(io, base);
    }
  }

 private:
  template <Around kAround, int offset> __device__ static A product(const Pair<A>& g, const Pair<A>& v) {
    return can_have<kAround, offset>() ? dot(g, v) : A(0);
  }

  // Computes row base + u - 7 of v0, row base + u - 6 of v1, and returns row base + u - 4 of v2.
  template <Around kAround, int u> __device__ Pair<A> walk_values(const Io& io, int base) {
    v0[(u + 1) % 8] = io.template value<kAround, u - 7>(base);
    c0[(u + 2) % 8] = io.template coefficient<kAround, u - 6, 0>(base);
    c1[(u + 4) % 8] = io.template coefficient<kAround, u - 4, 1>(base);
    v1[(u + 2) % 8] = v0[(u + 2) % 8];
    if constexpr (can_have<kAround, u - 7>()) v1[(u + 2) % 8].add(c0[(u + 2) % 8], v0[(u + 1) % 8]);
    Pair<A> v2 = v1[(u + 4) % 8];
    if constexpr (can_have<kAround, u - 6>()) v2.add(c1[(u + 4) % 8], v1[(u + 2) % 8]);
    return v2;
  }
};

}  // namespace ricci::shift_and_sum_kernels
