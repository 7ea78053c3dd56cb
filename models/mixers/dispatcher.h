// The mixer `dispatcher` (Cetoli 2021): every position adds to its values those of the positions
// 1, 2, 4, ... before it, times coefficients that it computes from its own input.
//   v = x W_value^T,   c = sigmoid(x W_coef^T),   y = shift_and_sum(v, c) W_out^T
// Heads are slices of the width. With share_heads all heads have the same weights, and each reads its own slice of x alone;
// otherwise the three maps read the whole width.
#pragma once
#include <optional>

#include "core/choice.h"
#include "core/fields.h"
#include "cuda/device/device.h"
#include "models/drop.h"
#include "models/layers.h"
#include "models/limits.h"
#include "models/mixers/mixer.h"
#include "ops/elements/sigmoid.h"
#include "ops/shapes/shape_ops.h"
#include "ops/shift_and_sum/shift_and_sum.h"

namespace ricci {

enum class CoefficientActivation : uint8_t { sigmoid, none };
constexpr auto choices(CoefficientActivation) { return std::array{"sigmoid", "none"}; }

struct DispatcherConfig {
  int64_t heads = 1;
  bool share_heads = false;
  CoefficientActivation coef_act = CoefficientActivation::sigmoid;
  std::optional<int64_t> levels{};
  bool drop_level0 = true;
  bool mixer_bias = false;
  bool operator==(const DispatcherConfig&) const = default;

  // The least number of levels by which the last position of `positions` hears the first; at least 1.
  static int64_t levels_for(int64_t positions) {
    int64_t levels = 1;
    while (int64_t{1} << levels < positions) ++levels;
    return levels;
  }
};

inline void visit_fields(DispatcherConfig& c, const Fields& field) {
  field("heads", c.heads, "slices of the width with coefficients of their own; they divide d").in(1, kLargestSize);
  field("share_heads", c.share_heads, "all heads have the same weights, and each reads its own slice alone");
  field("coef_act", c.coef_act, "what makes coefficients of the map's results");
  field("levels", c.levels, "a layer hears 2^levels positions; null: as many levels as ctx needs").in(1, 30);
  field("drop_level0", c.drop_level0, "dropout may skip the level that hears the position before");
  field("mixer_bias", c.mixer_bias, "the three maps of the mixer have biases");
}

inline void check(const DispatcherConfig& c, const MixerShape& place) {
  check_heads(c.heads, place.d);
  if (!place.causal) fail("model.causal: false, but the dispatcher hears earlier positions only");
}

// What a user should know of a config that can be trained. Empty: nothing.
inline std::string warning(const DispatcherConfig& c, const MixerShape& place) {
  const int64_t needed = DispatcherConfig::levels_for(place.ctx);
  if (!c.levels || *c.levels >= needed) return {};
  return format_message("model.levels: with {} levels a layer hears {} positions, but ctx is {}, which {} levels would hear",
      {*c.levels, int64_t{1} << *c.levels, place.ctx, needed});
}

struct Dispatcher {
  static constexpr const char* kName = "dispatcher";
  static constexpr bool kOnlyCausal = true;
  using Config = DispatcherConfig;

  // The values of the latest positions at every level, as shift_and_sum_cached wants them.
  struct Cache {
    Tensor rings_bsd;
    int64_t position = 0;
  };

  Linear value, coef, out;
  Config config;
  int64_t d, ctx, levels;
  double dropout;

  Dispatcher(const MixerShape& place, const Config& c)
      : config(c), d(place.d), ctx(place.ctx), levels(c.levels.value_or(Config::levels_for(place.ctx))), dropout(place.dropout) {
    const int64_t width = c.share_heads ? d / c.heads : d, of_coef = c.share_heads ? levels : c.heads * levels;
    value = Linear(width, width, c.mixer_bias, place.init.map(width));
    coef = Linear(width, of_coef, c.mixer_bias, place.init.map(width));
    out = Linear(width, width, c.mixer_bias, place.init.into_residual(width));
  }

  // A causal mixer needs to know nothing of padding: it lies behind all other positions.
  Tensor operator()(const Arg& x_bcd, const Tensor&) const {
    return mix(x_bcd, [&](const Tensor& v_bcd, const Tensor& coef_bcx) {
      return shift_and_sum(v_bcd, coef_bcx, {config.heads, Training::active() ? dropout : 0, config.drop_level0});
    });
  }

  // Levels whose shift is beyond the context never hear anything: they have no ring.
  Cache make_cache(int64_t batch, Dtype dtype, Device device) const {
    const int64_t rings = std::min(levels, Config::levels_for(ctx));
    return {zeros({batch, (int64_t{1} << rings) - 1, d}, dtype, device), 0};
  }
  Tensor operator()(const Arg& x_bcd, Cache& cache) const {
    return mix(x_bcd, [&](const Tensor& v_bcd, const Tensor& coef_bcx) {
      const Tensor y_bcd = shift_and_sum_cached(v_bcd, coef_bcx, cache.rings_bsd, cache.position, {.heads = config.heads});
      cache.position += v_bcd.shape()[1];  // like the rings, which the call has written
      return y_bcd;
    });
  }
  int64_t positions_at_once() const { return ctx; }

  // The formula around any shift-and-sum: shift_and_sum(v, coef) -> [b c d].
  template <class Mix> Tensor mix(const Arg& x_bcd, const Mix& shift_and_sum) const {
    const int64_t b = x_bcd.shape()[0], c = x_bcd.shape()[1];
    const Arg x = config.share_heads ? Arg(reshape(x_bcd, {b, c, config.heads, d / config.heads})) : x_bcd;
    Tensor coef_bcx = reshape(coef(x), {b, c, config.heads * levels});
    if (config.coef_act == CoefficientActivation::sigmoid) coef_bcx = sigmoid(coef_bcx);
    const Tensor y_bcd = shift_and_sum(reshape(value(x), {b, c, d}), coef_bcx);
    return config.share_heads ? reshape(out(reshape(y_bcd, {b, c, config.heads, d / config.heads})), {b, c, d}) : out(y_bcd);
  }

  template <class V> void visit(V&& v) { v("value", value), v("coef", coef), v("out", out); }
};

static_assert(Mixer<Dispatcher>);

}  // namespace ricci
