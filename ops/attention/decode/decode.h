// Decoding: the new positions, and the caches of the earlier ones, for all devices.
#pragma once
#include "ops/attention/kernels.h"

namespace ricci::attention_kernels {

// Some of the new positions: first .. first + count - 1 of their sequences. They are the rows from `row` on of q, k, v and y. Position t is
// in slot t mod capacity of the caches. If k and v share a cache, k_cache and v_cache are equal.
template <class T> struct CachedQueries {
  Problem problem;  // its queries and keys are the new positions
  HeadRows<const T> q, k, v;
  HeadRows<T> y;
  T *k_cache, *v_cache;  // [b, kv_heads, capacity, k]
  int64_t capacity, row, first, count;

  // The offset of position t in the caches, for the head that query head `head` uses.
  HD int64_t slot(int64_t head, int64_t t) const { return (head / problem.group * capacity + t % capacity) * problem.width; }
  template <class E> HD E* at(const HeadRows<E>& rows, int64_t head, int64_t r) const {
    return rows.of_head(problem, head) + (row + r) * rows.row;
  }
  // Position t sees the keys of the positions first_key .. end_key - 1.
  HD int64_t first_key(int64_t t) const { return problem.sees.first_key(t); }
  HD int64_t end_key(int64_t t) const { return problem.sees.end_key(t, t + 1); }
};

template <class T> void attend_cached_cpu(const CachedQueries<T>& queries);

}  // namespace ricci::attention_kernels
