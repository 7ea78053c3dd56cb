// The mixer `avgpool`: the mean over a window of positions minus the position itself (PoolFormer, Yu et al. 2022). The residual connection
// adds that position again. With it, the paper shows how much of a transformer's quality comes from the block and not from attention.
#pragma once
#include <algorithm>

#include "core/fields.h"
#include "models/layers/layers.h"
#include "models/layers/mixer.h"
#include "ops/pooling/window_mean.h"
#include "ops/shapes/shape_ops.h"

namespace ricci {

struct AveragePoolConfig {
  int64_t pool = 3;
};

struct AveragePool {
  using Config = AveragePoolConfig;

  Tensor operator()(const Arg& x_bcd, const Tensor& lengths_b) const { return window_mean_difference(x_bcd, window, lengths_b); }

  MeanWindow window;
  int64_t ctx;

  AveragePool(const MixerShape& shape, const AveragePoolConfig& config) : window{config.pool, shape.causal}, ctx(shape.ctx) {}

  struct Cache {
    Tensor recent_bcd;  // the latest positions that a later window includes; initially empty
  };
  Cache make_cache(int64_t, Dtype, Device) const { return {}; }
  Tensor operator()(const Arg& x_bcd, Cache& cache) const {
    const Tensor all_bcd = cache.recent_bcd ? concatenate({cache.recent_bcd, x_bcd}, 1) : Tensor(x_bcd);
    const int64_t count = all_bcd.shape()[1], news = x_bcd.shape()[1], kept = std::min(count, window.window - 1);
    cache.recent_bcd = slice(all_bcd, 1, count - kept, kept);
    return slice(window_mean_difference(all_bcd, window), 1, count - news, news);
  }
  int64_t positions_at_once() const { return ctx; }

  static constexpr const char* kName = "avgpool";
  template <class V> void visit(V&&) {}
};

inline void visit_fields(AveragePoolConfig& c, const Fields& field) {
  field("pool", c.pool, "number of positions in a mean (odd unless causal)").in(1, kLargestSize);
}

inline void check(const AveragePoolConfig& c, const MixerShape& shape) {
  if (!shape.causal && c.pool % 2 == 0) fail("model.pool: {}, expected an odd number if causal is false", {c.pool});
}

static_assert(Mixer<AveragePool>);

}  // namespace ricci
