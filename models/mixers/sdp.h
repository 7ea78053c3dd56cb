// The mixer `sdp`: multi-head scaled dot-product attention, causal or not, with an optional window.
//   r_bncC = q_bcnk . k_bCnk / sqrt(k),   p = softmax_C(r | visible),   y = merge(p v) W_proj^T
#pragma once
#include "models/mixers/attention.h"

namespace ricci {

struct DotProduct {
  static constexpr const char* kName = "sdp";
  using Config = AttentionConfig;

  template <class Attend> Tensor operator()(const Arg& x_bcd, const Attend& attend) const {
    const auto [q, k, v] = thirds(qkv(x_bcd));
    return proj(attend(q, k, v));
  }

  Linear qkv, proj;  // qkv.weight (3d, d): row blocks q | k | v, head-major inside each block
  int64_t heads;

  DotProduct(const MixerShape& shape, const Config& config)
      : qkv(shape.d, 3 * shape.d, shape.bias, shape.init.packed_projection(shape.d)),
        proj(shape.d, shape.d, shape.bias, shape.init.attention_output(shape.d)),
        heads(config.heads) {}

  Forms forms() const {
    const int64_t d = qkv.weight.value.shape()[1];
    return query_key_forms(qkv.weight.value.rows(0, d), qkv.weight.value.rows(d, d), heads);
  }
  template <class V> void visit(V&& v) { v("qkv", qkv, "proj", proj); }
};

using Sdp = Attention<DotProduct>;
static_assert(Mixer<Sdp>);

}  // namespace ricci
