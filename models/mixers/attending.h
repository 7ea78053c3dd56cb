// What the mixers with a softmax over visible positions share: heads, a window, padding, dropout of weights, and caches.
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

struct AttentionConfig {
  int64_t heads = 4;
  std::optional<int64_t> window{};
  bool operator==(const AttentionConfig&) const = default;
};

inline void visit_fields(AttentionConfig& c, const Fields& field) {
  field("heads", c.heads, "attention heads; they divide d").in(1, kLargestSize);
  field("window", c.window, "a token attends to itself and the window - 1 before it; null: to all").in(1, kLargestSize);
}

inline void check(const AttentionConfig& c, const MixerShape& place) { check_heads(c.heads, place.d); }

struct Attending {
  Visibility sees;
  AttentionOptions options;
  int64_t d, ctx;

  Attending(const MixerShape& place, const AttentionConfig& config)
      : sees(place.causal ? Visibility::causal(config.window.value_or(0)) : Visibility::not_causal(config.window.value_or(0))),
        options{.heads = config.heads, .dropout = place.dropout},
        d(place.d),
        ctx(place.ctx) {}

  // The options of a call on whole sequences.
  AttentionOptions now(const Tensor& lengths_b) const {
    AttentionOptions now = options;
    now.lengths_b = lengths_b;
    if (!Training::active()) now.dropout = 0;
    return now;
  }

  // Attention of whole sequences, as attend(q, k, v).
  auto whole(const Tensor& lengths_b) const {
    return [this, now = now(lengths_b)](const Rows& q, const Rows& k, const Rows& v) { return attention(q, k, v, sees, now); };
  }

  // The keys and values of the positions read so far, those of position t in slot t mod slots. One tensor where the values are the keys.
  struct Cache {
    Tensor k_bnsk, v_bnsk;
    int64_t position = 0;
  };
  Cache make_cache(int64_t batch, Dtype dtype, Device device, bool values_are_keys = false) const {
    const auto room = [&] { return zeros({batch, options.heads, slots(), d / options.heads}, dtype, device); };
    const Tensor k_bnsk = room();
    return {k_bnsk, values_are_keys ? k_bnsk : room()};
  }
  // formula(attend), in which attend(q, k, v) is attention of the next positions to these and all earlier ones. After an error the cache
  // is where it was.
  template <class Formula> Tensor next(int64_t positions, Cache& cache, const Formula& formula) const {
    const Tensor y_bcd = formula([&](const Rows& q, const Rows& k, const Rows& v) {
      return attention_cached(q, k, v, cache.k_bnsk, cache.v_bnsk, cache.position, sees, options);
    });
    cache.position += positions;
    return y_bcd;
  }
  // With a window twice the window, so that many positions can be read at once.
  int64_t slots() const { return std::min(ctx, 2 * sees.most); }
  // A new position takes the slot of the one that is `slots` older. The first of those read at once must find its window.
  int64_t positions_at_once() const { return slots() < ctx ? slots() - sees.most + 1 : ctx; }
};

}  // namespace ricci
