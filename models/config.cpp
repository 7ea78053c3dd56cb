// What a config may hold.
#include "models/config.h"

namespace ricci {

namespace {

bool only_causal(MixerKind mixer) {
  bool only = false;
  Mixers::at(static_cast<size_t>(mixer), [&]<class M>() {
    if constexpr (requires { M::kOnlyCausal; }) only = M::kOnlyCausal;
  });
  return only;
}

// f.operator()<F>() for the family of the config.
template <class Config, class F> void at_family(Config& c, const F& f) { Families::at(static_cast<size_t>(c.family), f); }

}  // namespace

void apply_preset(ModelConfig& c) {
  at_family(c, [&]<class F>() {
    if constexpr (requires { F::kSeesAll; }) c.causal = only_causal(c.mixer);
  });
  if (c.preset == Preset::gpt) return;  // whose values the structs start with
  c.block.norm = Norm::post;
  c.block.activation = Activation::relu;
  c.embedding = {PositionKind::sinusoidal, true};
  c.output = {.tie = false, .head_bias = true};
}

void check(const ModelConfig& c) {
  const FamilyTraits family = c.traits();
  check_size("vocab", c.vocab);
  check_size("ctx", c.ctx);
  check_size("d", c.d);
  check_size("layers", c.layers, 1, kMaxLayers);
  check(c.block, c.d);
  Mixers::at(static_cast<size_t>(c.mixer), [&]<class M>() { check(c.of<M>(), shape_of(c)); });
  if (!family.mixes && c.mixer != kind_of<Sdp>)
    fail("model.mixer: {}, but family {} has an attention of its own, expected {}", {name_of(c.mixer), family.name, Sdp::kName});
  if (!family.mixes && !c.causal) fail("model.causal: false, but family {} reads cells only when they are complete", {family.name});
  if (family.reads_down) check(c.down);
  if (family.reads_scales) check(c.scales);
  if (family.reads_stacks) check(c.stack_layers, c.scales);
  at_family(c, [&]<class F>() {
    if constexpr (requires { F::check(c, c.of<F>()); }) F::check(c, c.of<F>());
  });
}

std::vector<std::string> warnings(const ModelConfig& c) {
  std::vector<std::string> all;
  Mixers::at(static_cast<size_t>(c.mixer), [&]<class M>() {
    if constexpr (requires { warning(c.of<M>(), shape_of(c)); })
      if (const std::string line = warning(c.of<M>(), shape_of(c)); !line.empty()) all.push_back(line);
  });
  at_family(c, [&]<class F>() {
    if constexpr (requires { F::warn(c, c.of<F>(), all); }) F::warn(c, c.of<F>(), all);
  });
  return all;
}

void resolve(ModelConfig& c) {
  c.block.ff = c.block.feed_forward(c.d);
  if (c.traits().reads_stacks) c.stack_layers.layers = c.stack_layers.of(c.scales);
  at_family(c, [&]<class F>() {
    if constexpr (requires { F::resolve(c, c.of<F>()); }) F::resolve(c, c.of<F>());
  });
}

}  // namespace ricci
