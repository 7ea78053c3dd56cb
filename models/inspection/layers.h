// The layers of a model that exchange information between positions, as plain structs. Functions give access to a layer's mixer, so
// programs that show layers need no templates.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/families/body.h"
#include "models/scales/attention.h"
#include "models/scales/resample.h"

namespace ricci {

// A MixingLayer refers to the model, so the model must outlive it.
struct MixingLayer {
  std::string kind;             // "attention"; "aggregation" (tokens attend to coarser cells); "join" (cells use coarser cells)
  std::string mixer{};          // the mixer's name, for an attention layer
  int64_t tokens = 1;           // tokens per query cell
  int64_t block = 0;            // index in its stack
  const void* layer = nullptr;  // as in Watch::attend
  const void* stack = nullptr;  // as in Watch::take_output
  struct Heads {
    int64_t first, count;
    Visibility sees;
  };
  std::vector<Heads> heads{};  // empty if this is not an attention layer
  Join join{};
  std::function<Forms()> forms = [] { return Forms(); };
  // Returns {q, p} for token embeddings; empty unless the scores come from a metric.
  std::function<std::array<Tensor, 2>(const Tensor& x_bcd)> metric_maps{};
};

template <class M> void look_at_mixer(MixingLayer& layer, const M& mixer) {
  if constexpr (requires { mixer.each_visibility([](auto&&...) {}); })
    mixer.each_visibility([&](int64_t first, int64_t count, const Visibility& sees) { layer.heads.push_back({first, count, sees}); });
  if constexpr (requires { mixer.forms(); }) layer.forms = [&mixer] { return mixer.forms(); };
}

template <Mixer M, class Block> void look_at_block(MixingLayer& layer, const M& mixer, const Block& block) {
  layer.mixer = M::kName;
  if constexpr (requires { mixer.attention; }) layer.layer = &mixer.attention;
  else layer.layer = &mixer;
  look_at_mixer(layer, mixer);
  if constexpr (requires(const Arg& x_bcd) { mixer.metric_maps(x_bcd); })
    layer.metric_maps = [&](const Tensor& x_bcd) { return mixer.metric_maps(block.config.norm == Norm::pre ? block.ln1(x_bcd) : x_bcd); };
}

template <Mixer M> void look_at(std::vector<MixingLayer>& all, int64_t tokens, const Stack<M>& stack) {
  for (size_t i = 0; i < stack.blocks.size(); ++i) {
    const Block<M>& block = stack.blocks[i];
    MixingLayer& layer = all.emplace_back(MixingLayer{.kind = "attention", .tokens = tokens});
    layer.block = static_cast<int64_t>(i);
    layer.stack = &stack;
    if constexpr (std::is_same_v<M, PerLayer>)
      std::visit([&](const auto& mixer) { look_at_block(layer, mixer, block); }, block.mixer.chosen);
    else look_at_block(layer, block.mixer, block);
  }
}
inline void look_at(std::vector<MixingLayer>& all, int64_t tokens, const ScaleAttention& attention) {
  MixingLayer& layer = all.emplace_back(MixingLayer{.kind = "aggregation", .tokens = tokens});
  layer.layer = &attention;
  look_at_mixer(layer, attention);
}
inline void look_at(std::vector<MixingLayer>& all, int64_t tokens, const Join& join) {
  all.push_back({.kind = "join", .tokens = tokens, .join = join});
}

// The layers in the order of each_attention.
template <class Shell> std::vector<MixingLayer> layers_of(Shell& shell) {
  std::vector<MixingLayer> all;
  shell.each_attention([&](int64_t tokens, const auto& layer) { look_at(all, tokens, layer); });
  return all;
}

}  // namespace ricci
