// Three levels q, q + 1, q + 2 in one walk; a pass for each level would access all of memory three times. These levels connect only
// positions at distances that are multiples of 2^q. Within such a class of positions, rows i = 0, 1, 2, ..., they are shifts by 1, 2 and 4
// rows:
//   v1[i] = v0[i] + c0[i] v0[i-1],   v2[i] = v1[i] + c1[i] v1[i-2],   v3[i] = v2[i] + c2[i] v2[i-4]
// A walk over the rows in order keeps the last values of v0, v1 and v2 in registers. The walk reads each row of v0 once and writes each row
// of v3 once, in place if wanted. The derivative, with g3 = dL/dv3:
//   g2[i] = g3[i] + c2[i+4] g3[i+4],   g1[i] = g2[i] + c1[i+2] g2[i+2],   g0[i] = g1[i] + c0[i+1] g1[i+1]
//   dc2[i] = <g3[i], v2[i-4]>,   dc1[i] = <g2[i], v1[i-2]>,   dc0[i] = <g1[i], v0[i-1]>
// This is a walk from the last row to the first, with v1 and v2 computed again. Both walks go through blocks of eight rows: row i is at
// slot i mod 8 of a ring. A row is one or more vectors with shared coefficients.
#pragma once
#include "core/cpu/vectors.h"
#include "ops/shift_and_sum/problem.h"

namespace ricci::shift_and_sum_kernels {

// The current row of a walk, in a tensor or in working memory.
template <class E> struct Row {
  E* data;
  int64_t next;  // elements from row to row

  HD void move(int64_t rows) {
    data += rows * next;
    asm("" : "+r"(data));  // without it, g++ keeps a pointer for each of eight rows, most of them in memory
  }
  HD Row of_class(int64_t m, int q) const { return {data + m * next, next << q}; }
};

// The columns of a row: a vector and the others. Recursive: g++ would keep an array of vectors in memory.
template <class A, int Bytes, int kVectors> struct Columns {
  using Of = Vectors<A, Bytes>;
  typename Of::Vector first;
  Columns<A, Bytes, kVectors - 1> others;

  HD void load(const A* from) {
    Of::load(from, first);
    others.load(from + Of::kLanes);
  }
  HD void store(A* target) const {
    Of::store(target, first);
    others.store(target + Of::kLanes);
  }
  HD void add(A coefficient, const Columns& v) {
    first += coefficient * v.first;
    others.add(coefficient, v.others);
  }
  HD A dot(const Columns& v) const {
    typename Of::Vector sum = first * v.first;
    others.add_products(v.others, sum);
    return Of::sum(sum);
  }
  HD void add_products(const Columns& v, typename Of::Vector& sum) const {
    sum += first * v.first;
    others.add_products(v.others, sum);
  }
};
template <class A, int Bytes> struct Columns<A, Bytes, 0> {
  HD void load(const A*) {}
  HD void store(A*) const {}
  HD void add(A, const Columns&) {}
  template <class Vector> HD void add_products(const Columns&, Vector&) const {}
};

template <class T, int Bytes, int kVectors> struct ForwardWalk {
  using A = Accumulator<T>;
  using V = Columns<A, Bytes, kVectors>;
  Row<const A> values;  // v0
  Row<A> result;        // v3
  Row<const T> c;       // from level q on
  uint32_t active;      // bit l: level q + l is not skipped
  V v0[kWalkRows]{}, v1[kWalkRows]{}, v2[kWalkRows]{};

  HD void walk(int64_t rows) {
    for (; rows >= kWalkRows; rows -= kWalkRows) step<0, true>(rows);
    step<0, false>(rows);
  }

 private:
  template <int u, bool kWhole> HD void step(int64_t rows) {
    if constexpr (u < kWalkRows) {
      if (!kWhole && u >= rows) return;
      V v;
      v.load(values.data);
#pragma GCC unroll 4
      for (int k = 0; k < kVectors * Bytes; k += 64) {  // the next columns: their rows are too far apart for the processor's prefetcher
        __builtin_prefetch(reinterpret_cast<const char*>(values.data) + kVectors * Bytes + k);
        __builtin_prefetch(reinterpret_cast<const char*>(result.data) + kVectors * Bytes + k);
      }
      v0[u] = v;
      if (active & 1) v.add(A(c.data[0]), v0[(u + 7) % 8]);
      v1[u] = v;
      if (active & 2) v.add(A(c.data[1]), v1[(u + 6) % 8]);
      v2[u] = v;
      if (active & 4) v.add(A(c.data[2]), v2[(u + 4) % 8]);
      v.store(result.data);
      values.move(1);
      result.move(1);
      c.move(1);
      step<u + 1, kWhole>(rows);
    }
  }
};

// A block first computes v1 and v2 of the rows that its gradients need, in order, then the gradients from its last row to its first.
template <class T, int Bytes, int kVectors> struct BackwardWalk {
  using A = Accumulator<T>;
  using V = Columns<A, Bytes, kVectors>;
  Row<const A> values, gradients;  // v0, g3
  Row<A> result, sums;             // g0; dc0, dc1 and dc2
  Row<const T> c;
  uint32_t active;
  V before{}, v1[12]{}, v2[8]{}, g1[kWalkRows]{}, g2[kWalkRows]{}, g3[kWalkRows]{};  // v1 from row base - 6 on, v2 from base - 4 on

  HD void walk(int64_t rows) {
    int64_t base = (rows - 1) / kWalkRows * kWalkRows;
    gradients.move(base + 7);
    result.move(base + 7);
    sums.move(base + 7);
    values.move(base - 7);
    c.move(base - 7);
    for (; base > 0; base -= kWalkRows)
      if (rows - base >= 12) block<false, true>(12);
      else block<false, false>(rows - base);
    block<true, false>(rows);
  }

 private:
  // kFirst: this is the first block. kWhole: at least 12 rows remain from the block's first row on; else `rows` remain.
  template <bool kFirst, bool kWhole> HD void block(int64_t rows) {
    compute_values<-7, kFirst, kWhole>(rows);
    c.move(1);
    compute_gradients<7, kFirst, kWhole>(rows);
    values.move(-13);
    c.move(-14);
  }
  template <bool kFirst> HD static constexpr bool exists(int row) { return !kFirst || row >= 0; }
  // Computes the values of row base + u.
  template <int u, bool kFirst, bool kWhole> HD void compute_values(int64_t rows) {
    if constexpr (u < 6) {
      if (exists<kFirst>(u) && (kWhole || u < rows)) {
        V v;
        v.load(values.data);
        if constexpr (u >= -6) {
          v1[u + 6] = v;
          if (exists<kFirst>(u - 1) && active & 1) v1[u + 6].add(A(c.data[0]), before);
        }
        if constexpr (u >= -4 && u < 4) {
          v2[u + 4] = v1[u + 6];
          if (exists<kFirst>(u - 2) && active & 2) v2[u + 4].add(A(c.data[1]), v1[u + 4]);
        }
        before = v;
      }
      values.move(1);
      c.move(1);
      compute_values<u + 1, kFirst, kWhole>(rows);
    }
  }
  // The values are one row before the gradients.
  template <int u, bool kFirst, bool kWhole> HD void compute_gradients(int64_t rows) {
    if constexpr (u >= 0) {
      if (kWhole || u < rows) {
        V g, v;
        g.load(gradients.data);
        g3[u] = g;
        if (exists<kFirst>(u - 4) && active & 4) sums.data[2] += g.dot(v2[u]);
        if (active & 4 && (kWhole || u + 4 < rows)) g.add(A(c.data[4 * c.next + 2]), g3[(u + 4) % 8]);
        g2[u] = g;
        if (exists<kFirst>(u - 2) && active & 2) sums.data[1] += g.dot(v1[u + 4]);
        if (active & 2 && (kWhole || u + 2 < rows)) g.add(A(c.data[2 * c.next + 1]), g2[(u + 2) % 8]);
        g1[u] = g;
        if (exists<kFirst>(u - 1)) v.load(values.data);
        if (exists<kFirst>(u - 1) && active & 1) sums.data[0] += g.dot(v);
        if (active & 1 && (kWhole || u + 1 < rows)) g.add(A(c.data[c.next]), g1[(u + 1) % 8]);
        g.store(result.data);
      }
      values.move(-1);
      gradients.move(-1);
      result.move(-1);
      sums.move(-1);
      c.move(-1);
      compute_gradients<u - 1, kFirst, kWhole>(rows);
    }
  }
};

}  // namespace ricci::shift_and_sum_kernels
