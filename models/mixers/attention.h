// The common part of mixers with a softmax over visible positions: heads, a window, padding, dropout of attention weights, and the cache.
// Such a mixer is Attention<Projection>. The projection contains only the formula; full sequences and decoding pass it different attention
// functions.
#pragma once
#include <algorithm>
#include <optional>
#include <string>

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

// The keys and values of earlier positions; position t is in slot t mod slots. If the values are the keys, both members are the same
// tensor.
struct KeyCache {
  Tensor k_bnsk, v_bnsk;
  int64_t position = 0;
};

// A projection is a struct with
//   p(x_bcd, first, attend)   the formula, for positions from `first` on. attend(q, k, v) is their attention; it can be called repeatedly
//   head_shape()              the heads in one call of attend, as defined below
//   values_are_keys()         true: the cache holds one tensor for keys and values
//   P(shape, config), visit, kName, Config, and the optional members of a mixer
struct HeadShape {
  int64_t queries, keys, width;  // query heads, key heads, columns of a head
  double scale = 0;              // the factor of the scores q . k (0: 1 / sqrt(width))
  int64_t calls = 1;             // number of calls of attend, each with different query heads
};

template <class Projection> struct Attention : Projection {
  using Config = typename Projection::Config;
  using Cache = KeyCache;

  using Projection::operator();  // the formula

  // Processes full sequences.
  Tensor operator()(const Arg& x_bcd, const Tensor& lengths_b) const {
    AttentionOptions whole = options;
    whole.lengths_b = lengths_b;
    if (Training::active()) whole.dropout = dropout;
    return (*this)(x_bcd, 0,
        [&](const ColumnSlice& q, const ColumnSlice& k, const ColumnSlice& v) { return watched_attention(this, q, k, v, sees, whole); });
  }
  // The next positions attend to themselves and all earlier ones. After an error, the cache is unchanged.
  Tensor operator()(const Arg& x_bcd, Cache& cache) const {
    make_room(cache, cache.position + x_bcd.shape()[1]);
    const Tensor y_bcd = (*this)(x_bcd, cache.position, [&](const ColumnSlice& q, const ColumnSlice& k, const ColumnSlice& v) {
      return attention_cached(q, k, v, cache.k_bnsk, cache.v_bnsk, cache.position, sees, options);
    });
    cache.position += x_bcd.shape()[1];
    return y_bcd;
  }

  Visibility sees;  // the keys visible to a query
  HeadShape head;
  AttentionOptions options;  // for evaluation and decoding
  double dropout;            // in training
  int64_t ctx;

  Attention(const MixerShape& shape, const Config& config)
      : Projection(shape, config),
        sees(shape.causal ? Visibility::causal(config.window.value_or(0)) : Visibility::not_causal(config.window.value_or(0))),
        head(Projection::head_shape()),
        options{.heads = head.queries, .scale = head.scale, .kv_heads = head.keys},
        dropout(shape.dropout),
        ctx(shape.ctx) {}

  Cache make_cache(int64_t batch, Dtype dtype, Device device) const {
    const auto room = [&] { return zeros({batch, head.keys, std::min(slots(), kFirstSlots), head.width}, dtype, device); };
    const Tensor k_bnsk = room();
    return {k_bnsk, Projection::values_are_keys() ? k_bnsk : room()};
  }
  // With a window, the cache holds twice the window: a call with multiple positions needs the windows of all of them.
  int64_t slots() const { return std::min(ctx, 2 * sees.most); }
  // A longer cache starts with this size and grows with the number of positions, so a short text does not need the memory of 131,072
  // positions.
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
  // A new position overwrites the position `slots` before it. The window of the first new position must stay complete.
  int64_t positions_at_once() const { return slots() < ctx ? slots() - sees.most + 1 : ctx; }

  template <class F> void each_visibility(const F& f) const { f(0, head.calls * head.queries, sees); }
};

inline void visit_fields(AttentionConfig& c, const Fields& field) {
  field("heads", c.heads, "attention heads (a divisor of d)").in(1, kLargestSize);
  field("window", c.window, "a token attends to itself and the window - 1 tokens before it (null: all)").in(1, kLargestSize);
}

inline void check(const AttentionConfig& c, const MixerShape& shape) { check_heads(c.heads, shape.d); }

inline std::string warning(const AttentionConfig& c, const MixerShape& shape) {
  if (c.window.value_or(0) <= shape.ctx) return {};
  return format_message("model.window: {} is longer than ctx: {}, so a token attends to all tokens before it", {*c.window, shape.ctx});
}

}  // namespace ricci
