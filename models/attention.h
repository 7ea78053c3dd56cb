// The mixer `sdp`: multi-head scaled dot-product attention, causal or not, with an optional window.
//   r_bncC = q_bcnk . k_bCnk / sqrt(k),   p = softmax_C(r | visible),   y = merge(p v) W_proj^T
#pragma once
#include "models/config.h"
#include "models/layers.h"
#include "models/training.h"
#include "ops/attention/attention.h"

namespace ricci {

struct SelfAttention {
  Linear qkv, proj;  // qkv.weight (3d, d): row blocks q | k | v, head-major inside each block
  AttentionOptions options;

  explicit SelfAttention(const ModelConfig& c)
      : qkv(c.d, 3 * c.d, c.bias), proj(c.d, c.d, c.bias), options{.heads = c.heads, .causal = c.causal, .window = c.window, .dropout = c.dropout} {}

  Tensor operator()(const Arg& x_bcd) const {
    AttentionOptions now = options;
    if (!Training::active()) now.dropout = 0;
    return proj(attention(qkv(x_bcd), now));
  }
  // The next positions of a sequence whose keys and values so far are in the cache.
  Tensor operator()(const Arg& x_bcd, KeyValueCache& cache) const { return proj(attention_cached(qkv(x_bcd), cache, options)); }

  template <class V> void visit(V&& v) { v("qkv", qkv), v("proj", proj); }
};

}  // namespace ricci
