// The extents of one attention, and which keys a query sees.
#pragma once
#include <cstdint>

#include "core/host_device.h"

namespace ricci::attention_kernels {

// Key s is visible to query t iff t - s < back and s - t < ahead. The keys of a query are an interval, and so are the
// queries of a key.
struct Band {
  int64_t back, ahead;
  HD bool visible(int64_t t, int64_t s) const { return t - s < back && s - t < ahead; }
  HD int64_t first_key(int64_t t) const { return t - back + 1 > 0 ? t - back + 1 : 0; }
  HD int64_t end_key(int64_t t, int64_t c) const { return t + ahead < c ? t + ahead : c; }
  HD int64_t first_query(int64_t s) const { return s - ahead + 1 > 0 ? s - ahead + 1 : 0; }
  HD int64_t end_query(int64_t s, int64_t c) const { return s + back < c ? s + back : c; }
};

struct Problem {
  int64_t batches, context, heads, width;  // b, c, n, k
  Band band;
  double scale;  // 1 / sqrt(k)

  HD int64_t d() const { return heads * width; }
  // Where the queries of a (batch, head) start in the packed projection [b, c, 3 d]; keys follow d later, values 2 d.
  HD int64_t packed(int64_t batch_head) const { return batch_head / heads * context * 3 * d() + batch_head % heads * width; }
  HD int64_t merged(int64_t batch_head) const { return batch_head / heads * context * d() + batch_head % heads * width; }  // in [b, c, d]
};

}  // namespace ricci::attention_kernels
