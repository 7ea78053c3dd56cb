// The mixer `identity`: y = x. It exchanges nothing between positions, so it shows the contribution of the feed-forward maps.
#pragma once
#include "models/layers/mixer.h"

namespace ricci {

struct Identity {
  Tensor operator()(const Arg& x_bcd, const Tensor&) const { return x_bcd; }

  static constexpr const char* kName = "identity";
  using Config = NoKeys;
  struct Cache {};
  int64_t ctx;
  Identity(const MixerShape& shape, const Config&) : ctx(shape.ctx) {}
  Cache make_cache(int64_t, Dtype, Device) const { return {}; }
  Tensor operator()(const Arg& x_bcd, Cache&) const { return x_bcd; }
  int64_t positions_at_once() const { return ctx; }
  template <class V> void visit(V&&) {}
};

static_assert(Mixer<Identity>);

}  // namespace ricci
