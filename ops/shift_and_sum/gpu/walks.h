// The walks of walk.h on a GPU: the same formulas, but a warp walks over 32 columns, one for each lane, in shared memory. Rings of rows
// are in registers. A block of eight rows is unrolled, so that a ring's places and the addresses of rows are constants. All lanes of a
// warp are at the same row: a coefficient is one load for all of them, and conditions on rows hold for the whole warp.
#pragma once
#include "ops/shift_and_sum/gpu/lane_sums.h"
#include "ops/shift_and_sum/gpu/parts.h"

namespace ricci::shift_and_sum_kernels {

// The rows that a block of eight depends on. inside: all of them exist. edge: each is asked for. alone: the class has just eight
// rows, and base is 0; after_alone: the block before that one in a walk backward, base is 8.
enum class Around { inside, edge, alone, after_alone };
// True if row u of a block may have a row `shift` before it.
template <Around kAround, int u, int shift> inline constexpr bool kReaches = kAround != Around::alone || u >= shift;

// Every 2^q-th of the rows that are held, from row m on, at the lane's column.
template <class A, int q> struct ClassRows {
  static constexpr int kRow = kColumns << q, kCoefficientRow = kCoefficients << q;
  const A* values_;
  A* result;
  const A* c;
  int rows;  // in the class

  __device__ A value(int i) const { return values_[i * kRow]; }
  __device__ A gradient(int i) const { return result[i * kRow]; }
  __device__ A coefficient(int i, int l) const { return c[i * kCoefficientRow + l]; }
  __device__ void store(int i, A v) const { result[i * kRow] = v; }

  // True if row base + offset exists.
  template <Around kAround, int offset> __device__ bool has(int base) const {
    if constexpr (kAround == Around::inside) return true;
    if constexpr (kAround == Around::edge) return base + offset >= 0 && base + offset < rows;
    constexpr int row = offset + (kAround == Around::after_alone ? kWalkRows : 0);
    return row >= 0 && row < kWalkRows;
  }
};

template <class A, int q> struct ForwardWalk {
  using Io = ClassRows<A, q>;
  A v0[kWalkRows], v1[kWalkRows], v2[kWalkRows];

  // Before the first row of a class: no value is there.
  __device__ void begin() {
    for (int i = 0; i < kWalkRows; ++i) v0[i] = v1[i] = v2[i] = A(0);
  }
  // The rows base .. base + 7, where they exist; base is a multiple of eight.
  template <Around kAround, bool kStore, int u = 0> __device__ void block(const Io& io, int base) {
    if constexpr (u < kWalkRows) {
      const int i = base + u;
      const bool exists = io.template has<kAround, u>(base);
      A v = exists ? io.value(i) : A(0);
      v0[u] = v;
      if (kReaches<kAround, u, 1> && exists) v += io.coefficient(i, 0) * v0[(u + 7) % 8];
      v1[u] = v;
      if (kReaches<kAround, u, 2> && exists) v += io.coefficient(i, 1) * v1[(u + 6) % 8];
      v2[u] = v;
      if (kReaches<kAround, u, 4> && exists) v += io.coefficient(i, 2) * v2[(u + 4) % 8];
      if (kStore && exists) io.store(i, v);
      block<kAround, kStore, u + 1>(io, base);
    }
  }
};

// From the last row to the first. The rows of v are up to seven rows before the rows of g: v0 is read at i - 7, v1 computed at i - 6 and
// v2 at i - 4. The coefficients of levels 0 and 1 are read there, and again when g comes to them: there are no registers to keep them in.
template <class A, int q> struct BackwardWalk {
  using Io = ClassRows<A, q>;
  A v0[kWalkRows], v1[kWalkRows], g1[kWalkRows], g2[kWalkRows], g3[kWalkRows];
  LaneSums<A> dc;  // sums over the block

  // After the last row of a class: no gradient is there.
  __device__ void begin() {
    for (int i = 0; i < kWalkRows; ++i) v0[i] = v1[i] = g1[i] = g2[i] = g3[i] = A(0);
  }
  // The rows base + 7 .. base, where they exist.
  template <Around kAround, bool kStore, int u = kWalkRows - 1> __device__ void block(const Io& io, int base) {
    if constexpr (u >= 0) {
      const int i = base + u;
      const A v2 = walk_values<kAround, u>(io, base);
      g3[u] = io.template has<kAround, u>(base) ? io.gradient(i) : A(0);
      g2[u] = g3[u];
      if (io.template has<kAround, u + 4>(base)) g2[u] += io.coefficient(i + 4, 2) * g3[(u + 4) % 8];
      g1[u] = g2[u];
      if (io.template has<kAround, u + 2>(base)) g1[u] += io.coefficient(i + 2, 1) * g2[(u + 2) % 8];
      if constexpr (kStore) {
        A g0 = g1[u];
        if (io.template has<kAround, u + 1>(base)) g0 += io.coefficient(i + 1, 0) * g1[(u + 1) % 8];
        dc.template add<u>(product<kAround, u, 1>(g1[u], v0[(u + 7) % 8]), product<kAround, u, 2>(g2[u], v1[(u + 6) % 8]),
            product<kAround, u, 4>(g3[u], v2));
        if (io.template has<kAround, u>(base)) io.store(i, g0);
      }
      block<kAround, kStore, u - 1>(io, base);
    }
  }

 private:
  template <Around kAround, int u, int shift> __device__ static A product(A g, A v) { return kReaches<kAround, u, shift> ? g * v : A(0); }

  // Row base + u - 7 of v0, the row after it of v1 and the row base + u - 4 of v2, which it returns.
  template <Around kAround, int u> __device__ A walk_values(const Io& io, int base) {
    const int i = base + u;
    v0[(u + 1) % 8] = io.template has<kAround, u - 7>(base) ? io.value(i - 7) : A(0);
    v1[(u + 2) % 8] = v0[(u + 2) % 8];
    if (io.template has<kAround, u - 7>(base) && io.template has<kAround, u - 6>(base))
      v1[(u + 2) % 8] += io.coefficient(i - 6, 0) * v0[(u + 1) % 8];
    A v2 = v1[(u + 4) % 8];
    if (io.template has<kAround, u - 6>(base) && io.template has<kAround, u - 4>(base)) v2 += io.coefficient(i - 4, 1) * v1[(u + 2) % 8];
    return v2;
  }
};

}  // namespace ricci::shift_and_sum_kernels
