// The mixer `dispatcher` (Cetoli 2021, Algorithm 1). In the code, Linear1 is `coef`, Linear2 `value` and Linear3 `out`. Row r of the
// drawing at the end of this file is level r.
//   c <- sigmoid(Linear1(x));   V <- Linear2(x)
//   for r = 0 .. R - 1:   V <- V + c[r] * shift_right(V, 2^r)         (zeros come in from the left)     return Linear3(V)
// Each step doubles the distance, so R = log2(positions) steps reach every earlier position. Attention compares all pairs of positions
// instead. Heads are slices of the width. With share_heads, all heads share one set of weights, applied to each slice of x; without it, the
// three maps use the full width.
#pragma once
#include <optional>

#include "core/choice.h"
#include "core/fields.h"
#include "cuda/device/device.h"
#include "models/layers/layers.h"
#include "models/layers/mixer.h"
#include "models/layers/watch.h"
#include "ops/elements/activations.h"
#include "ops/shapes/shape_ops.h"

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

  // ceil(log2(positions)), at least 1: the number of levels that make the last position depend on the first.
  static int64_t levels_for(int64_t positions) {
    int64_t levels = 1;
    while (int64_t{1} << levels < positions) ++levels;
    return levels;
  }
};

struct Dispatcher {
  using Config = DispatcherConfig;

  // Ignores lengths: padding comes last, and a position depends only on earlier ones.
  Tensor operator()(const Arg& x_bcd, const Tensor&) const {
    return mix(x_bcd, [&](const Tensor& v_bcd, const Tensor& coef_bcx) {
      return watched_shift_and_sum(this, v_bcd, coef_bcx, {config.heads, Training::active() ? dropout : 0, config.drop_level0});
    });
  }

  // sum_shifted(v, coef) is the shift-and-sum, of full sequences or of the next positions.
  template <class Sum> Tensor mix(const Arg& x_bcd, const Sum& sum_shifted) const {
    const int64_t b = x_bcd.shape()[0], c = x_bcd.shape()[1];
    const Arg x = config.share_heads ? Arg(reshape(x_bcd, {b, c, config.heads, d / config.heads})) : x_bcd;
    Tensor coef_bcx = reshape(coef(x), {b, c, config.heads * levels});
    if (config.coef_act == CoefficientActivation::sigmoid) coef_bcx = sigmoid(coef_bcx);
    const Tensor y_bcd = sum_shifted(reshape(value(x), {b, c, d}), coef_bcx);
    return config.share_heads ? reshape(out(reshape(y_bcd, {b, c, config.heads, d / config.heads})), {b, c, d}) : out(y_bcd);
  }

  Linear value, coef, out;
  Config config;
  int64_t d, ctx, levels;
  double dropout;

  Dispatcher(const MixerShape& shape, const Config& c)
      : config(c), d(shape.d), ctx(shape.ctx), levels(c.levels.value_or(Config::levels_for(shape.ctx))), dropout(shape.dropout) {
    const int64_t width = c.share_heads ? d / c.heads : d, coef_width = c.share_heads ? levels : c.heads * levels;
    value = Linear(width, width, c.mixer_bias, shape.init.map(width));
    coef = Linear(width, coef_width, c.mixer_bias, shape.init.map(width));
    out = Linear(width, width, c.mixer_bias, shape.init.into_residual(width));
  }

  // The values of the latest positions at every level, for shift_and_sum_cached.
  struct Cache {
    Tensor rings_bsd;
    int64_t position = 0;
  };
  // A level with a shift beyond the context never receives a value, so it has no ring.
  Cache make_cache(int64_t batch, Dtype dtype, Device device) const {
    const int64_t rings = std::min(levels, Config::levels_for(ctx));
    return {zeros({batch, (int64_t{1} << rings) - 1, d}, dtype, device), 0};
  }
  Tensor operator()(const Arg& x_bcd, Cache& cache) const {
    return mix(x_bcd, [&](const Tensor& v_bcd, const Tensor& coef_bcx) {
      const Tensor y_bcd = shift_and_sum_cached(v_bcd, coef_bcx, cache.rings_bsd, cache.position, {.heads = config.heads});
      cache.position += v_bcd.shape()[1];  // only after the call has written the rings
      return y_bcd;
    });
  }
  int64_t positions_at_once() const { return ctx; }

  static constexpr const char* kName = "dispatcher";
  static constexpr bool kOnlyCausal = true;
  template <class V> void visit(V&& v) { v("value", value, "coef", coef, "out", out); }
};

inline void visit_fields(DispatcherConfig& c, const Fields& field) {
  field("heads", c.heads, "number of parts of the width with separate coefficients (a divisor of d)").in(1, kLargestSize);
  field("share_heads", c.share_heads, "all heads share one set of weights, applied to each part of the width");
  field("coef_act", c.coef_act, "activation of the coefficients");
  field("levels", c.levels, "number of levels; a position depends on 2^levels positions (null: enough for ctx)").in(1, 30);
  field("drop_level0", c.drop_level0, "dropout can skip level 0, the shift by one position");
  field("mixer_bias", c.mixer_bias, "the three maps of the mixer have biases");
}

inline void check(const DispatcherConfig& c, const MixerShape& shape) {
  check_heads(c.heads, shape.d);
  if (!shape.causal) fail("model.causal: false, but the dispatcher uses only earlier positions");
}

inline std::string warning(const DispatcherConfig& c, const MixerShape& shape) {
  const int64_t needed = DispatcherConfig::levels_for(shape.ctx);
  if (!c.levels || *c.levels == needed) return {};
  if (*c.levels > needed)
    return format_message(
        "model.levels: {} levels, but with ctx: {} a layer spans every position after {}", {*c.levels, shape.ctx, needed});
  return format_message("model.levels: with {} levels a layer spans {} positions, but ctx: {} needs {} levels",
      {*c.levels, int64_t{1} << *c.levels, shape.ctx, needed});
}

static_assert(Mixer<Dispatcher>);

}  // namespace ricci

// The levels r = 0, 1, 2 for eight positions. An arrow a -> b adds c_b[r] times the value of position a, after level r - 1, to the value of
// position b. (0..3) means the inputs that a value depends on after the level.
//
//   r = 0   0->1     1->2     2->3     3->4     4->5     5->6     6->7        (0) (0..1) (1..2) (2..3) (3..4) (4..5) (5..6) (6..7)
//   r = 1   0->2     1->3     2->4     3->5     4->6     5->7                 (0) (0..1) (0..2) (0..3) (1..4) (2..5) (3..6) (4..7)
//   r = 2   0->4     1->5     2->6     3->7                                   (0) (0..1) (0..2) (0..3) (0..4) (0..5) (0..6) (0..7)
