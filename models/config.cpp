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

MixerShape place_of(const ModelConfig& c) {
  return {.d = c.d, .ctx = c.ctx, .causal = c.causal, .bias = c.block.bias, .dropout = c.block.dropout, .init = {c.preset, c.layers}};
}

bool has_scales(Family family) { return family != Family::decoder && family != Family::classifier; }

namespace {

void check_scales(const ModelConfig& c) {
  const bool has_list = c.family != Family::coarse, has_stacks = c.family == Family::topdown || c.family == Family::bottomup;
  if (c.mixer != kind_of<Sdp>)
    fail("model.mixer: {}, but family {} has an attention of its own, expected {}", {name_of(c.mixer), name_of(c.family), Sdp::kName});
  if (!c.causal) fail("model.causal: false, but family {} reads cells only when they are complete", {name_of(c.family)});
  check(c.down);
  if (has_list) check(c.scales);
  if (has_stacks) check(c.stack_layers, c.scales);
  if (c.family == Family::topdown) check(c.topdown, c.scales);
  if (c.family == Family::bottomup) check_bottom_up(c.scales, c.of<Sdp>());
  if (c.family == Family::retina) check(c.retina, c.scales, c.of<Sdp>());
  if (c.family == Family::coarse) check(c.coarse);
}

}  // namespace

void check(const ModelConfig& c) {
  check_size("vocab", c.vocab);
  check_size("ctx", c.ctx);
  check_size("d", c.d);
  check_size("layers", c.layers, 1, kMaxLayers);
  check(c.block, c.d);
  if (c.family == Family::classifier) check(c.classifier);
  Mixers::at(static_cast<size_t>(c.mixer), [&]<class M>() { check(c.of<M>(), place_of(c)); });
  if (has_scales(c.family)) check_scales(c);
}

std::vector<std::string> warnings(const ModelConfig& c) {
  std::vector<std::string> all;
  Mixers::at(static_cast<size_t>(c.mixer), [&]<class M>() {
    if constexpr (requires { warning(c.of<M>(), place_of(c)); })
      if (const std::string line = warning(c.of<M>(), place_of(c)); !line.empty()) all.push_back(line);
  });
  if (!has_scales(c.family)) return all;
  const std::vector<int64_t> scales = c.family == Family::coarse ? std::vector<int64_t>{c.coarse.scale} : c.scales.scales;
  for (size_t i = 0; i < scales.size(); ++i) {
    if (scales[i] <= c.ctx) continue;
    const std::string lost = c.family == Family::coarse ? "the model says nothing and learns nothing"
                             : c.family == Family::retina
                                 ? "the heads of this scale give zero"
                                 : format_message("its {} blocks are never used", {c.stack_layers.of(c.scales)[i]});
    all.push_back(format_message("model.{}: a cell of {} tokens is longer than the context of {}: {}",
        {c.family == Family::coarse ? "scale" : "scales", scales[i], c.ctx, lost}));
  }
  return all;
}

void resolve(ModelConfig& c) {
  c.block.ff = c.block.feed_forward(c.d);
  if (c.family == Family::topdown || c.family == Family::bottomup) c.stack_layers.layers = c.stack_layers.of(c.scales);
  if (c.family != Family::retina) return;
  if (c.retina.windows.empty()) c.retina.windows.assign(c.scales.scales.size(), {0, c.ctx});
  if (c.retina.head_groups.empty()) c.retina.head_groups = divided_heads(c.of<Sdp>().heads, static_cast<int64_t>(c.scales.scales.size()));
}

}  // namespace ricci
