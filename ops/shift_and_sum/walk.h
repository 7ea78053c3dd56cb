// Three levels q, q + 1, q + 2 in one walk. These levels connect only positions whose distance is a multiple of 2^q. Within such
// a class of positions, rows i = 0, 1, 2, ..., they are shifts by 1, 2 and 4 rows:
//   v1[i] = v0[i] + c0[i] v0[i-1],   v2[i] = v1[i] + c1[i] v1[i-2],   v3[i] = v2[i] + c2[i] v2[i-4]
// A walk over the rows in order keeps the last values of v0, v1 and v2 in registers. It reads each row of v0 once and writes each
// row of v3 once, which may have the same place. The derivative, with g3 = dL/dv3:
//   g2[i] = g3[i] + c2[i+4] g3[i+4],   g1[i] = g2[i] + c1[i+2] g2[i+2],   g0[i] = g1[i] + c0[i+1] g1[i+1]
//   dc2[i] = <g3[i], v2[i-4]>,   dc1[i] = <g2[i], v1[i-2]>,   dc0[i] = <g1[i], v0[i-1]>
// It is a walk from the last row to the first, which computes v1 and v2 again.
// Both go through blocks of eight rows: row i has place i mod 8 of a ring. What a row depends on is at most seven rows away; a walk that
// begins within a class first goes through the block before it, without storing.
//
// `Io` is where rows come from and go to. Its type V is one row of some columns, a vector on the CPU:
//   const A* values(i), gradients(i)   rows of v0 and g3, each a V in a tensor (Stored); asked for inside the class only
//   A coefficient(i, l)             of level q + l
//   bool active(l)                  not if the level is skipped
//   void store(i, v)                of v3, or of g0
//   void add(i, l, g, v)            dc_l[i] is <g, v>
#pragma once
#include "ops/shift_and_sum/problem.h"

namespace ricci::shift_and_sum_kernels {

template <class Io> struct ForwardWalk {
  using V = typename Io::V;
  using Stored = typename Io::Stored;
  V v0[kWalkRows], v1[kWalkRows], v2[kWalkRows];

  // Before the first row of a class: no value is there.
  HD void begin() {
    for (int i = 0; i < kWalkRows; ++i) v0[i] = v1[i] = v2[i] = V{};
  }
  // The rows base .. base + rows - 1; base is a multiple of eight, rows at most eight.
  template <bool kStore> HD void block(const Io& io, int64_t base, int64_t rows) {
    if (rows >= kWalkRows) step<0, true, kStore>(io, base, kWalkRows);
    else step<0, false, kStore>(io, base, rows);
  }

 private:
  template <int u, bool kWhole, bool kStore> HD void step(const Io& io, int64_t base, int64_t rows) {
    if constexpr (u < kWalkRows) {
      if (!kWhole && u >= rows) return;
      const int64_t i = base + u;
      V v = *reinterpret_cast<const Stored*>(io.values(i));
      v0[u] = v;
      if (io.active(0)) v += io.coefficient(i, 0) * v0[(u + 7) % 8];
      v1[u] = v;
      if (io.active(1)) v += io.coefficient(i, 1) * v1[(u + 6) % 8];
      v2[u] = v;
      if (io.active(2)) v += io.coefficient(i, 2) * v2[(u + 4) % 8];
      if (kStore) io.store(i, v);
      step<u + 1, kWhole, kStore>(io, base, rows);
    }
  }
};

// The rows of v are up to seven rows before the rows of g: v0 is read at i - 7, v1 computed at i - 6 and v2 at i - 4.
template <class Io> struct BackwardWalk {
  using V = typename Io::V;
  using Stored = typename Io::Stored;
  V v0[kWalkRows], v1[kWalkRows], v2[kWalkRows], g1[kWalkRows], g2[kWalkRows], g3[kWalkRows];

  HD void begin() {
    for (int i = 0; i < kWalkRows; ++i) v0[i] = v1[i] = v2[i] = g1[i] = g2[i] = g3[i] = V{};
  }
  // The rows base + 7 .. base, where they are below `end`, the number of rows of the class.
  template <bool kStore> HD void block(const Io& io, int64_t base, int64_t end) {
    if (base >= kWalkRows && base + 12 <= end) step<kWalkRows - 1, true, kStore>(io, base, end);
    else step<kWalkRows - 1, false, kStore>(io, base, end);
  }

 private:
  template <bool kWhole> HD static auto coefficient(const Io& io, int64_t i, int level, int64_t end) {
    return kWhole || (i >= 0 && i < end) ? io.coefficient(i, level) : decltype(io.coefficient(i, level))(0);
  }
  template <int u, bool kWhole, bool kStore> HD void step(const Io& io, int64_t base, int64_t end) {
    if constexpr (u >= 0) {
      const int64_t i = base + u;
      V v = kWhole || (i >= 7 && i - 7 < end) ? *reinterpret_cast<const Stored*>(io.values(i - 7)) : V{};
      v0[(u + 1) % 8] = v;
      v = v0[(u + 2) % 8];
      if (io.active(0)) v += coefficient<kWhole>(io, i - 6, 0, end) * v0[(u + 1) % 8];
      v1[(u + 2) % 8] = v;
      v = v1[(u + 4) % 8];
      if (io.active(1)) v += coefficient<kWhole>(io, i - 4, 1, end) * v1[(u + 2) % 8];
      v2[(u + 4) % 8] = v;

      const bool exists = kWhole || i < end;
      V g = exists ? *reinterpret_cast<const Stored*>(io.gradients(i)) : V{};
      g3[u] = g;
      if (kStore && exists) io.add(i, 2, g, v2[(u + 4) % 8]);
      if (io.active(2)) g += coefficient<kWhole>(io, i + 4, 2, end) * g3[(u + 4) % 8];
      g2[u] = g;
      if (kStore && exists) io.add(i, 1, g, v1[(u + 6) % 8]);
      if (io.active(1)) g += coefficient<kWhole>(io, i + 2, 1, end) * g2[(u + 2) % 8];
      g1[u] = g;
      if (kStore && exists) io.add(i, 0, g, v0[(u + 7) % 8]);
      if (io.active(0)) g += coefficient<kWhole>(io, i + 1, 0, end) * g1[(u + 1) % 8];
      if (kStore && exists) io.store(i, g);
      step<u - 1, kWhole, kStore>(io, base, end);
    }
  }
};

}  // namespace ricci::shift_and_sum_kernels
