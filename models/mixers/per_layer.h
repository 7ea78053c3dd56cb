// The mixer of a model with different mixers in its layers. A list such as `mixer: [dispatcher, dispatcher, sdp]` is repeated over the
// layers, and block i uses entry i. A block's parameters have the same names as in a model with one mixer.
#pragma once
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "models/mixers/mixers.h"

namespace ricci {

struct PerLayerConfig {
  ChoiceList<MixerKind> mixers;
  Mixers::Configs configs;
};

struct PerLayer {
  using Config = PerLayerConfig;
  template <class M> struct CacheOf { typename M::Cache value; };
  using Cache = Mixers::OneOf<CacheOf>;

  Tensor operator()(const Arg& x_bcd, const Tensor& lengths_b) const {
    return std::visit([&](const auto& mixer) { return mixer(x_bcd, lengths_b); }, chosen);
  }
  Tensor operator()(const Arg& x_bcd, Cache& cache) const {
    return std::visit([&]<class M>(const M& mixer) { return mixer(x_bcd, std::get<CacheOf<M>>(cache).value); }, chosen);
  }

  Mixers::OneOf<std::type_identity_t> chosen;  // the mixer of this block

  PerLayer(const MixerShape& shape, const Config& config) : chosen(make(shape, config)) {}

  Cache make_cache(int64_t batch, Dtype dtype, Device device) const {
    return std::visit([&]<class M>(const M& mixer) -> Cache { return CacheOf<M>{mixer.make_cache(batch, dtype, device)}; }, chosen);
  }
  int64_t positions_at_once() const {
    return std::visit([](const auto& mixer) { return mixer.positions_at_once(); }, chosen);
  }

  static constexpr const char* kName = "per_layer";
  template <class V> void visit(V&& v) {
    std::visit([&](auto& mixer) { mixer.visit(v); }, chosen);
  }

 private:
  static decltype(chosen) make(const MixerShape& shape, const Config& c) {
    const MixerKind kind = c.mixers[static_cast<size_t>(shape.layer) % c.mixers.size()];
    std::optional<decltype(chosen)> made;
    Mixers::call_for(kind, [&]<class M>() { made.emplace(std::in_place_type<M>, shape, c.configs.settings<M>()); });
    return std::move(*made);
  }
};

static_assert(Mixer<PerLayer>);

}  // namespace ricci
