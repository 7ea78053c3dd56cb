// What a config may hold.
#include "models/config.h"

namespace ricci {

void apply_preset(ModelConfig& c) {
  if (c.family == Family::classifier) c.causal = false;
  if (c.preset == Preset::gpt) return;  // whose values the structs start with
  c.block.norm = Norm::post;
  c.block.activation = Activation::relu;
  c.embedding = {PositionKind::sinusoidal, true};
  c.output = {.tie = false, .head_bias = true};
}

MixerPlace place_of(const ModelConfig& c) {
  return {.d = c.d, .ctx = c.ctx, .causal = c.causal, .bias = c.block.bias, .dropout = c.block.dropout, .init = {c.preset, c.layers}};
}

void check(const ModelConfig& c) {
  constexpr int64_t kMostLayers = 100'000;  // each is made before the first number is asked for
  check_size("vocab", c.vocab);
  check_size("ctx", c.ctx);
  check_size("d", c.d);
  check_size("layers", c.layers, 1, kMostLayers);
  check(c.block, c.d);
  if (c.family == Family::classifier) check(c.classifier);
  Mixers::at(static_cast<size_t>(c.mixer), [&]<class M>() { check(c.of<M>(), place_of(c)); });
}

void resolve(ModelConfig& c) { c.block.ff = c.block.feed_forward(c.d); }

}  // namespace ricci
