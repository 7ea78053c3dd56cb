// The running softmax of attention on the CPU. A softmax needs the largest score and the sum over all keys first, but a row of scores for
// each query would not stay in the caches. So the keys come in blocks of 64, and each time a larger score arrives, everything summed so far
// is rescaled. Each query keeps its largest score so far, m, the sum l of exp(s - m), and the output o, the sum of exp(s - m) v. A block of
// keys with the scores s_j = z q . k_j updates them to
//   m' = max(m, max_j s_j),   p_j = exp(s_j - m'),   l' = l exp(m - m') + sum_j p_j,   o' = o exp(m - m') + sum_j p_j v_j
// This follows from exp(s - m) exp(m - m') = exp(s - m'). After the last block y = o / l, and lse = m + log l is kept for the backward
// pass.
#pragma once
#include "core/cpu/isa.h"
#include "core/cpu/vectors.h"
#include "cuda/math.h"
#include "ops/attention/cpu/block.h"

namespace ricci::attention_kernels {

template <class A> constexpr A kLowest = -A(__builtin_huge_val());

// Processes one block: scores s_ij become weights p_ij (0 if not visible), m_i and l_i are updated, and the rows of o are scaled by exp(m -
// m'); forward.cpp then adds p v. Each step runs over all rows before the next step starts, so the processor works on many independent rows
// together.
template <class A, int Bytes> struct RunningSoftmax {
  using V = Vectors<A, Bytes>;
  Tile tile;
  A *s, *m, *l, *o;
  int64_t row, width;  // the distance between the rows of o, and the row length

  HD void operator()(int64_t begin, int64_t end) const {
    A next[kBlock];
    for (int64_t i = begin; i < end; ++i) next[i] = largest_score(m[i], s + i * kBlock, Columns(tile, i));
    for (int64_t i = begin; i < end; ++i) exponentials(s + i * kBlock, Columns(tile, i), next[i] > kLowest<A> ? next[i] : A(0));
    for (int64_t i = begin; i < end; ++i) {
      if (next[i] > m[i] && l[i] != 0) correct(i, math::exp(m[i] - next[i]));
      m[i] = next[i];
      l[i] += sum(s + i * kBlock, Columns(tile, i));
    }
  }
  HD static A largest_score(A largest, const A* s_j, Columns columns) {
#pragma omp simd reduction(max : largest)
    for (int j = columns.begin; j < columns.end; ++j) largest = max(largest, columns.sees(j) ? s_j[j] : kLowest<A>);
    return largest;
  }
  HD static void exponentials(A* s_j, Columns columns, A shift) {
#pragma omp simd
    for (int j = columns.begin; j < columns.end; ++j) s_j[j] = columns.sees(j) ? math::exp(s_j[j] - shift) : A(0);
  }
  HD static A sum(const A* p_j, Columns columns) {
    typename V::Vector total{}, next;
    for (int j = columns.begin; j < columns.end; j += V::kLanes) {
      V::load(p_j + j, next);
      total += next;
    }
    return V::sum(total);
  }
  HD void correct(int64_t i, A factor) const {
    l[i] *= factor;
#pragma omp simd
    for (int64_t x = 0; x < width; ++x) o[i * row + x] *= factor;
  }
};

}  // namespace ricci::attention_kernels
