// Every mixer there is. A run file chooses one by its name; adding one is adding its header and its name to this list.
#pragma once
#include <tuple>

#include "core/choice.h"
#include "models/mixers/avgpool.h"
#include "models/mixers/dispatcher.h"
#include "models/mixers/identity.h"
#include "models/mixers/metric.h"
#include "models/mixers/quad_full.h"
#include "models/mixers/sdp.h"

namespace ricci {

template <Mixer... M> struct MixerList {
  static constexpr std::array<const char*, sizeof...(M)> names() { return {M::kName...}; }

  template <class One> static constexpr size_t place_of() {
    size_t place = 0, found = 0;
    ((std::is_same_v<One, M> ? void(found = place++) : void(++place)), ...);
    return found;
  }
  // f.operator()<M>() for each of them, in their order.
  template <class F> static void each(const F& f) { (f.template operator()<M>(), ...); }
  // The same for the one that stands at `place`.
  template <class F> static void at(size_t place, const F& f) {
    size_t i = 0;
    ((i++ == place ? f.template operator()<M>() : void()), ...);
  }

  // The keys of all of them, of which a model reads those of its mixer.
  struct Configs {
    template <class One> struct Of {
      typename One::Config value;
      bool operator==(const Of&) const = default;
    };
    std::tuple<Of<M>...> all;
    template <class One> auto& of() { return std::get<Of<One>>(all).value; }
    template <class One> const auto& of() const { return std::get<Of<One>>(all).value; }
    bool operator==(const Configs&) const = default;
  };
};

using Mixers = MixerList<Sdp, Dispatcher, QuadFull, Quad, POnly, Metric, MetricPsd, AveragePool, Identity>;

// The choice of a mixer at run time: its place in the list.
enum class MixerKind : uint8_t {};
constexpr auto choices(MixerKind) { return Mixers::names(); }
template <class M> inline constexpr MixerKind kind_of = static_cast<MixerKind>(Mixers::place_of<M>());

}  // namespace ricci
