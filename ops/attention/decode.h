// What decoding shares between devices: new positions and the caches of the earlier ones.
#pragma once
#include "ops/attention/kernels.h"

namespace ricci::attention_kernels {

// The positions first .. first + count, whose projection starts in row `row` of qkv. Position t lies in slot t mod capacity.
template <class T> struct CachedQueries {
  Problem problem;  // its context is the number of rows in qkv
  const T* qkv;
  T *k_cache, *v_cache;  // [b, heads, capacity, k]
  T* y;
  int64_t capacity, row, first, count;

  HD int64_t slot(int64_t head, int64_t t) const { return (head * capacity + t % capacity) * problem.width; }
  HD const T* q(int64_t head, int64_t r) const { return qkv + problem.packed(head) + (row + r) * 3 * problem.d(); }
  HD T* y_of(int64_t head, int64_t r) const { return y + problem.merged(head) + (row + r) * problem.d(); }
};

template <class T> void attend_cached_cpu(const CachedQueries<T>& of);

}  // namespace ricci::attention_kernels
