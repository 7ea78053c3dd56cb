// The mixer `sdp`: multi-head scaled dot-product attention, causal or not, with an optional window.
//   r_bncC = q_bcnk . k_bCnk / sqrt(k),   p = softmax_C(r | visible),   y = merge(p v) W_proj^T
// With qk_norm the q and k of every head are RMS-normalised before (Henry et al. 2020).
#pragma once
#include "models/mixers/attention.h"
#include "ops/rotary/rotary.h"

namespace ricci {

struct SdpConfig : AttentionConfig {
  bool qk_norm = false;
};

inline void visit_fields(SdpConfig& c, const Fields& field) {
  visit_fields(static_cast<AttentionConfig&>(c), field);
  field("qk_norm", c.qk_norm, "the queries and keys of every head are RMS-normalised, with a gain for queries and one for keys");
}

inline void check(const SdpConfig& c, const MixerShape& shape) { check(static_cast<const AttentionConfig&>(c), shape); }

struct DotProduct {
  static constexpr const char* kName = "sdp";
  using Config = SdpConfig;

  template <class Attend> Tensor operator()(const Arg& x_bcd, const Attend& attend) const {
    const Tensor qkv_bcx = qkv(x_bcd);
    const auto [q, k, v] = thirds(qkv_bcx);
    if (!q_norm.weight.value) return proj(attend(q, k, v));
    const Tensor normed_bcx = rotary(qkv_bcx, {heads, heads, v.width / heads}, q_norm.weight, k_norm.weight, {}, 0, q_norm.eps);
    return proj(attend(Rows{normed_bcx, 0, v.width}, Rows{normed_bcx, v.width, v.width}, v));
  }

  Linear qkv, proj;          // qkv.weight (3d, d): row blocks q | k | v, head-major inside each block
  LayerNorm q_norm, k_norm;  // without weights: there is no norm
  int64_t heads;

  DotProduct(const MixerShape& shape, const Config& config)
      : qkv(shape.d, 3 * shape.d, shape.bias, shape.init.packed_projection(shape.d)),
        proj(shape.d, shape.d, shape.bias, shape.init.attention_output(shape.d)),
        heads(config.heads) {
    for (LayerNorm* norm : {&q_norm, &k_norm})
      if (config.qk_norm) *norm = LayerNorm(shape.d / heads, {.kind = NormKind::rms, .eps = shape.norm_eps});
  }

  Forms forms() const {
    if (q_norm.weight.value) return {};  // normalised: the scores are no products of two positions
    const int64_t d = qkv.weight.value.shape()[1];
    return query_key_forms(qkv.weight.value.rows(0, d), qkv.weight.value.rows(d, d), heads);
  }
  template <class V> void visit(V&& v) { v("qkv", qkv, "q_norm", q_norm, "k_norm", k_norm, "proj", proj); }
};

using Sdp = Attention<DotProduct>;
static_assert(Mixer<Sdp>);

}  // namespace ricci
