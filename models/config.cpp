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

}  // namespace

void apply_preset(ModelConfig& c) {
  if (c.family == Family::classifier) c.causal = only_causal(c.mixer);
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

std::vector<std::string> warnings(const ModelConfig& c) {
  std::vector<std::string> all;
  Mixers::at(static_cast<size_t>(c.mixer), [&]<class M>() {
    if constexpr (requires { warning(c.of<M>(), place_of(c)); })
      if (const std::string line = warning(c.of<M>(), place_of(c)); !line.empty()) all.push_back(line);
  });
  return all;
}

void resolve(ModelConfig& c) { c.block.ff = c.block.feed_forward(c.d); }

}  // namespace ricci
