// The common part of the mixers with a softmax over visible positions: heads, a window, padding, dropout of weights, and caches. Such a
// mixer is Attention<Projection>, where the projection is its formula around an attention of any kind.
#pragma once
#include <algorithm>
#include <optional>

#include "core/fields.h"
#include "cuda/device/device.h"
#include "models/layers/layers.h"
#include "models/layers/mixer.h"
#include "models/layers/watch.h"
#include "ops/shapes/shape_ops.h"

namespace ricci {

struct AttentionConfig {
  int64_t heads = 4;
  std::optional<int64_t> window{};
};

// The keys and values of the positions read so far, position t in slot t mod slots. One tensor where the values are the keys.
struct KeyCache {
  Tensor k_bnsk, v_bnsk;
  int64_t position = 0;
};

// A projection is a struct that has
//   p(x_bcd, attend)    the formula: attend(q, k, v) is the attention of x's positions, and may be called several times
//                       p(x_bcd, attend, first), where the formula depends on the first of these positions
//   p(shape, config)    its parameters; visit() names them
//   kName, Config       as a mixer
//   heads               their number
// and may have
//   values_are_keys()   true: the cache holds one tensor for both
//   kv_heads, width     the number of heads of keys and values, where it is not `heads`, and the width of a head, where it is not d / heads
//   call_heads()        heads of one call of attend, where it is not all of them
//   scale()             what scores are multiplied by, where it is not the root of a head's width
// and what else a mixer may have.
template <class Projection> struct Attention : Projection {
  using Config = typename Projection::Config;
  using Cache = KeyCache;

  // Whole sequences.
  Tensor operator()(const Arg& x_bcd, const Tensor& lengths_b) const {
    AttentionOptions whole = options;
    whole.lengths_b = lengths_b;
    if (!Training::active()) whole.dropout = 0;
    return mix(x_bcd, 0, [&](const Rows& q, const Rows& k, const Rows& v) { return watched_attention(q, k, v, sees, whole); });
  }
  // The next positions: their attention to these and all earlier ones. After an error the cache is where it was.
  Tensor operator()(const Arg& x_bcd, Cache& cache) const {
    make_room(cache, cache.position + x_bcd.shape()[1]);
    const Tensor y_bcd = mix(x_bcd, cache.position, [&](const Rows& q, const Rows& k, const Rows& v) {
      return attention_cached(q, k, v, cache.k_bnsk, cache.v_bnsk, cache.position, sees, options);
    });
    cache.position += x_bcd.shape()[1];
    return y_bcd;
  }
  template <class Attend> Tensor mix(const Arg& x_bcd, [[maybe_unused]] int64_t first, const Attend& attend) const {
    if constexpr (requires { Projection::operator()(x_bcd, attend, first); }) return Projection::operator()(x_bcd, attend, first);
    else return Projection::operator()(x_bcd, attend);
  }

  Visibility sees;
  AttentionOptions options;
  int64_t head_width, ctx;

  Attention(const MixerShape& shape, const Config& config)
      : Projection(shape, config),
        sees(shape.causal ? Visibility::causal(config.window.value_or(0)) : Visibility::not_causal(config.window.value_or(0))),
        options{.heads = Projection::heads, .dropout = shape.dropout},
        ctx(shape.ctx) {
    if constexpr (requires { Projection::call_heads(); }) options.heads = Projection::call_heads();
    if constexpr (requires { Projection::scale(); }) options.scale = Projection::scale();
    if constexpr (requires { Projection::kv_heads; }) options.kv_heads = Projection::kv_heads;
    if constexpr (requires { Projection::width; }) head_width = Projection::width;
    else head_width = shape.d / options.heads;
  }

  Cache make_cache(int64_t batch, Dtype dtype, Device device) const {
    const auto room = [&] {
      return zeros({batch, options.kv_heads ? options.kv_heads : options.heads, std::min(slots(), kFirstSlots), head_width}, dtype, device);
    };
    const Tensor k_bnsk = room();
    if constexpr (requires { Projection::values_are_keys(); })
      if (Projection::values_are_keys()) return {k_bnsk, k_bnsk};
    return {k_bnsk, room()};
  }
  // With a window the cache holds twice the window, so that several positions can be read at once.
  int64_t slots() const { return std::min(ctx, 2 * sees.most); }
  // A longer cache grows with the positions that are read, so that a short text does not take the memory of a context of 131,072.
  static constexpr int64_t kFirstSlots = 2048;
  void make_room(Cache& cache, int64_t positions) const {
    const Tensor k_bnsk = cache.k_bnsk;
    const Shape& shape = k_bnsk.shape();
    if (positions <= shape[2] || shape[2] >= slots()) return;
    const int64_t more = std::min(slots(), std::max(positions, 2 * shape[2])) - shape[2];
    const Tensor room_bnsk = zeros({shape[0], shape[1], more, shape[3]}, k_bnsk.dtype(), k_bnsk.device());
    cache.k_bnsk = concatenate({k_bnsk, room_bnsk}, 2);
    cache.v_bnsk = cache.v_bnsk.raw() == k_bnsk.raw() ? cache.k_bnsk : concatenate({cache.v_bnsk, room_bnsk}, 2);
  }
  // A new position takes the slot of the one that is `slots` older. The window of the first position read must stay whole.
  int64_t positions_at_once() const { return slots() < ctx ? slots() - sees.most + 1 : ctx; }

  template <class F> void each_visibility(const F& f) const { f(0, Projection::heads, sees); }
};

inline void visit_fields(AttentionConfig& c, const Fields& field) {
  field("heads", c.heads, "attention heads; they divide d").in(1, kLargestSize);
  field("window", c.window, "a token attends to itself and the window - 1 before it; null: to all").in(1, kLargestSize);
}

inline void check(const AttentionConfig& c, const MixerShape& shape) { check_heads(c.heads, shape.d); }

}  // namespace ricci
