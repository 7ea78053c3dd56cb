// One attention as its kernels see it: extents, views as pointers, and which weights dropout keeps.
#pragma once
#include <cstdint>

#include "core/host_device.h"
#include "core/philox.h"
#include "ops/attention/visibility.h"

namespace ricci::attention_kernels {

// A limit of distances in 32 bits. kFar stands for no limit, because no distance within a block of gpu/ is longer, and flash_fits keeps
// every t and scale j below half of it.
constexpr int kFar = 1 << 30;
HD int bounded(int64_t n) { return static_cast<int>(between<int64_t>(-kFar, n, kFar)); }

// Dropout of the weights p_tj: each stays with probability 1 - p and is then divided by it. Which ones stay is a function of
// the random stream and of (head, t, j), so that the backward finds the same ones.
struct WeightDropout {
  PhiloxSource random{};
  uint32_t dropped_below = 0;  // 2^32 p; 0 without dropout
  double scale = 1;            // 1 / (1 - p)
  int64_t first_head = 0;      // the number of head 0 in the whole batch, whose micro-batch this may be
  HD bool active() const { return dropped_below > 0; }
  // The factor of weight number `index` of the whole batch (Problem::weight).
  template <class A> HD A factor(int64_t index) const {
    return random.philox().bits(static_cast<uint64_t>(index)) < dropped_below ? A(0) : A(scale);
  }
};

// A `head` below is one query head of one sequence: number b n + its number among the n heads.
struct Problem {
  int64_t batches, queries, keys, heads, width;  // b, c, C, n, k
  Visibility sees;
  double scale;  // the factor of the scores
  WeightDropout dropout{};
  const int64_t* lengths = nullptr;  // how many keys of each sequence exist, on the device; all if it is null
  int64_t group = 1;                 // neighbouring query heads that share a head of keys and values

  HD int64_t d() const { return heads * width; }
  // Counted in heads of keys and values: number h of them is shared by the query heads group h .. group h + group - 1.
  HD Problem of_key_heads() const {
    Problem keys = *this;
    keys.heads = heads / group;
    keys.group = 1;
    return keys;
  }
  // The number of keys that exist for a head: the ones of its sequence, without the padding after it.
  HD int64_t keys_of(int64_t head) const {
    if (!lengths) return keys;
    return between<int64_t>(0, lengths[head / heads], keys);
  }
  // The number of the weight of query t and key 0; the other keys follow.
  HD int64_t weight(int64_t head, int64_t t) const { return ((dropout.first_head + head) * queries + t) * keys; }
};

// Queries, keys, values or outputs of all heads, or their gradients. A head has `width` neighbouring numbers at a position.
template <class T> struct HeadRows {
  T* data;                // at sequence 0, position 0, head 0
  int64_t row, sequence;  // how many elements apart positions and sequences are
  int64_t group = 1;      // neighbouring query heads that share a head of these
  bool operator==(const HeadRows&) const = default;

  // Position 0 of what query head `head` reads.
  HD T* of_head(const Problem& problem, int64_t head) const {
    const int64_t n = head % problem.heads, shared = group == 1 ? n : n / group;
    return data + head / problem.heads * sequence + shared * problem.width;
  }
};

}  // namespace ricci::attention_kernels
