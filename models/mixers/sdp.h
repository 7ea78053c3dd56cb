// The mixer `sdp`: multi-head scaled dot-product attention, causal or not, with an optional window.
//   r_bncC = q_bcnk . k_bCnk / sqrt(k),   p = softmax_C(r | visible),   y = merge(p v) W_proj^T
#pragma once
#include "models/mixers/attending.h"

namespace ricci {

struct Sdp {
  static constexpr const char* kName = "sdp";
  using Config = AttentionConfig;

  using Cache = Attending::Cache;

  Linear qkv, proj;  // qkv.weight (3d, d): row blocks q | k | v, head-major inside each block
  Attending attending;

  Sdp(const MixerShape& place, const Config& config)
      : qkv(place.d, 3 * place.d, place.bias, place.init.packed_projection(place.d)),
        proj(place.d, place.d, place.bias, place.init.attention_output(place.d)),
        attending(place, config) {}

  Tensor operator()(const Arg& x_bcd, const Tensor& lengths_b) const { return mix(x_bcd, attending.whole(lengths_b)); }

  Cache make_cache(int64_t batch, Dtype dtype, Device device) const { return attending.make_cache(batch, dtype, device); }
  Tensor operator()(const Arg& x_bcd, Cache& cache) const {
    return attending.next(x_bcd.shape()[1], cache, [&](const auto& attend) { return mix(x_bcd, attend); });
  }
  int64_t positions_at_once() const { return attending.positions_at_once(); }

  // The formula around any attention: attend(q, k, v) -> [b c d].
  template <class Attend> Tensor mix(const Arg& x_bcd, const Attend& attend) const {
    const auto [q, k, v] = thirds(qkv(x_bcd));
    return proj(attend(q, k, v));
  }

  template <class V> void visit(V&& v) { v("qkv", qkv), v("proj", proj); }
};

static_assert(Mixer<Sdp>);

}  // namespace ricci
