// The mixer `sdp`: multi-head scaled dot-product attention, causal or not, with an optional window.
//   r_bncC = q_bcnk . k_bCnk / sqrt(k),   p = softmax_C(r | visible),   y = merge(p v) W_proj^T
#pragma once
#include <algorithm>

#include "cuda/device/device.h"
#include "models/config.h"
#include "models/drop.h"
#include "models/layers.h"
#include "ops/attention/attention.h"

namespace ricci {

// Keys and values of the positions read so far; position t lies in slot t mod slots.
struct KeyValueCache {
  Tensor k_bnsk, v_bnsk;
  int64_t position = 0;
};

struct SelfAttention {
  Linear qkv, proj;  // qkv.weight (3d, d): row blocks q | k | v, head-major inside each block
  AttentionOptions options;
  int64_t slots;  // of a cache: with a window twice the window, so that a window of positions can be read at once

  explicit SelfAttention(const ModelConfig& c)
      : qkv(c.d, 3 * c.d, c.bias), proj(c.d, c.d, c.bias),
        options{.heads = c.heads, .causal = c.causal, .window = c.window.value_or(0), .dropout = c.dropout},
        slots(options.window ? std::min(c.ctx, 2 * options.window) : c.ctx) {}

  // lengths_b as in AttentionOptions.
  Tensor operator()(const Arg& x_bcd, const Tensor& lengths_b = {}) const {
    AttentionOptions now = options;
    now.lengths_b = lengths_b;
    if (!Training::active()) now.dropout = 0;
    return proj(attention(qkv(x_bcd), now));
  }

  KeyValueCache make_cache(int64_t batch) const {
    const Tensor& w = qkv.weight.value;
    const Shape shape{batch, options.heads, slots, w.shape()[1] / options.heads};
    return {zeros(shape, w.dtype(), w.device()), zeros(shape, w.dtype(), w.device()), 0};
  }
  // The next positions of a sequence; at most slots - window + 1 of them with a window.
  Tensor operator()(const Arg& x_bcd, KeyValueCache& cache) const {
    const Tensor y_bcd = attention_cached(qkv(x_bcd), cache.k_bnsk, cache.v_bnsk, cache.position, options);
    cache.position += x_bcd.shape()[1];
    return proj(y_bcd);
  }

  template <class V> void visit(V&& v) { v("qkv", qkv), v("proj", proj); }
};

}  // namespace ricci
