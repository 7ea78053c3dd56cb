// The mixer `sdp`: multi-head scaled dot-product attention, causal or not, with an optional window.
//   r_bncC = q_bcnk . k_bCnk / sqrt(k),   p = softmax_C(r | visible),   y = merge(p v) W_proj^T
#pragma once
#include <algorithm>
#include <optional>

#include "core/fields.h"
#include "cuda/device/device.h"
#include "models/drop.h"
#include "models/layers.h"
#include "models/limits.h"
#include "models/mixers/mixer.h"
#include "ops/attention/attention.h"

namespace ricci {

struct SdpConfig {
  int64_t heads = 4;
  std::optional<int64_t> window;
  bool operator==(const SdpConfig&) const = default;
};

template <std::same_as<SdpConfig> Config, class Field> void visit_fields(Config& c, Field&& field) {
  field("heads", c.heads, "attention heads; they divide d");
  field("window", c.window, "a token attends to itself and the window - 1 before it; null: to all");
}

inline void check(const SdpConfig& c, const MixerPlace& place) {
  check_size("heads", c.heads);
  if (place.d % c.heads != 0) fail("model.heads: {} does not divide d = {}", {c.heads, place.d});
  if (c.window) check_size("window", *c.window);
}

struct Sdp {
  static constexpr const char* kName = "sdp";
  using Config = SdpConfig;

  // Keys and values of the positions read so far. Position t lies in slot t mod slots.
  struct Cache {
    Tensor k_bnsk, v_bnsk;
    int64_t position = 0;
  };

  Linear qkv, proj;  // qkv.weight (3d, d): row blocks q | k | v, head-major inside each block
  Visibility sees;
  AttentionOptions options;
  int64_t d, ctx;

  Sdp(const MixerPlace& place, const SdpConfig& config)
      : qkv(place.d, 3 * place.d, place.bias, place.init.packed_projection(place.d)),
        proj(place.d, place.d, place.bias, place.init.attention_output(place.d)),
        sees(place.causal ? Visibility::causal(config.window.value_or(0)) : Visibility::not_causal(config.window.value_or(0))),
        options{.heads = config.heads, .dropout = place.dropout},
        d(place.d), ctx(place.ctx) {}

  Tensor operator()(const Arg& x_bcd, const Tensor& lengths_b) const {
    AttentionOptions now = options;
    now.lengths_b = lengths_b;
    if (!Training::active()) now.dropout = 0;
    const auto [q, k, v] = thirds(qkv(x_bcd));
    return proj(attention(q, k, v, sees, now));
  }

  Cache make_cache(int64_t batch, Dtype dtype, Device device) const {
    const Shape shape{batch, options.heads, slots(), d / options.heads};
    return {zeros(shape, dtype, device), zeros(shape, dtype, device), 0};
  }
  Tensor operator()(const Arg& x_bcd, Cache& cache) const {
    const auto [q, k, v] = thirds(qkv(x_bcd));
    const Tensor y_bcd = attention_cached(q, k, v, cache.k_bnsk, cache.v_bnsk, cache.position, sees, options);
    cache.position += x_bcd.shape()[1];
    return proj(y_bcd);
  }
  // A new position takes the slot of the one that is `slots` older. The first of those read at once must find its window.
  int64_t positions_at_once() const { return slots() < ctx ? slots() - sees.most + 1 : ctx; }

  template <class V> void visit(V&& v) { v("qkv", qkv), v("proj", proj); }

 private:
  // Of a cache: with a window twice the window, so that many positions can be read at once.
  int64_t slots() const { return std::min(ctx, 2 * sees.most); }
};

static_assert(Mixer<Sdp>);

}  // namespace ricci
