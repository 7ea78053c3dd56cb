// The extents of one attention, and which keys a query sees.
#pragma once
#include <cstdint>

#include "core/host_device.h"
#include "core/philox.h"

namespace ricci::attention_kernels {

// Key s is visible to query t iff t - s < back and s - t < ahead. The keys of a query are an interval, and so are the
// queries of a key. `keys` and `queries` count those there are.
struct Band {
  int64_t back, ahead;
  HD bool visible(int64_t t, int64_t s) const { return t - s < back && s - t < ahead; }
  HD int64_t first_key(int64_t t) const { return t - back + 1 > 0 ? t - back + 1 : 0; }
  HD int64_t end_key(int64_t t, int64_t keys) const { return t + ahead < keys ? t + ahead : keys; }
  HD int64_t first_query(int64_t s) const { return s - ahead + 1 > 0 ? s - ahead + 1 : 0; }
  HD int64_t end_query(int64_t s, int64_t queries) const { return s + back < queries ? s + back : queries; }
};

// Dropout of the weights p_ts: each stays with probability 1 - p and is then divided by it. Which ones stay is a function
// of the random stream and of (head, t, s), heads counted over the whole batch, so that the backward finds the same ones.
struct WeightDropout {
  PhiloxSource random{};
  uint32_t dropped_below = 0;  // 2^32 p; 0: no dropout
  double scale = 1;            // 1 / (1 - p)
  int64_t first_head = 0;      // the number of head 0 in the whole that this batch is a part of
  HD bool active() const { return dropped_below > 0; }
  HD int64_t row(int64_t head, int64_t t, int64_t context) const { return ((first_head + head) * context + t) * context; }
  // Of key s the factor is that of index row(head, t) + s.
  template <class A> HD A factor(int64_t index) const {
    return random.philox().bits(static_cast<uint64_t>(index)) < dropped_below ? A(0) : A(scale);
  }
};

struct Problem {
  int64_t batches, context, heads, width;  // b, c, n, k
  Band band;
  double scale;  // 1 / sqrt(k)
  WeightDropout dropout{};
  const int64_t* lengths = nullptr;  // of each sequence, on the device; null: all have the whole context

  // How many keys a (batch, head) has: those of its sequence, without the padding behind it.
  HD int64_t keys(int64_t batch_head) const {
    if (!lengths) return context;
    const int64_t length = lengths[batch_head / heads];
    return length < 0 ? 0 : length < context ? length : context;
  }
  HD int64_t d() const { return heads * width; }
  // Where the queries of a (batch, head) start in the packed projection [b, c, 3 d]; keys follow d later, values 2 d.
  HD int64_t packed(int64_t batch_head) const { return batch_head / heads * context * 3 * d() + batch_head % heads * width; }
  HD int64_t merged(int64_t batch_head) const { return batch_head / heads * context * d() + batch_head % heads * width; }  // in [b, c, d]
};

}  // namespace ricci::attention_kernels
