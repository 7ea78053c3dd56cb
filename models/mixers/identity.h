// The mixer `identity`: y = x. Positions hear nothing from each other; what is left of a block is its feed-forward map.
#pragma once
#include "core/fields.h"
#include "models/layers/mixer.h"

namespace ricci {

struct IdentityConfig {
  bool operator==(const IdentityConfig&) const = default;
};
inline void visit_fields(IdentityConfig&, const Fields&) {}
inline void check(const IdentityConfig&, const MixerShape&) {}

struct Identity {
  static constexpr const char* kName = "identity";
  using Config = IdentityConfig;
  struct Cache {};

  Tensor operator()(const Arg& x_bcd, const Tensor&) const { return x_bcd; }

  int64_t ctx;
  Identity(const MixerShape& shape, const IdentityConfig&) : ctx(shape.ctx) {}
  Cache make_cache(int64_t, Dtype, Device) const { return {}; }
  Tensor operator()(const Arg& x_bcd, Cache&) const { return x_bcd; }
  int64_t positions_at_once() const { return ctx; }
  template <class V> void visit(V&&) {}
};

static_assert(Mixer<Identity>);

}  // namespace ricci
