// The concept of a family: what a model is as a whole. Every family has a file of its own here; in reading order:
//   family.h           what a family offers, and the keys that several of them read
//   body.h             a body: from the embeddings of tokens to what the last map reads, and both ends of a model around it
//   language_model.h   the shell around a body that predicts the next token, and the family decoder, whose body is a Stack
//   topdown.h, bottomup.h, retina.h                other bodies
//   classifier.h, coarse.h                         other shells
//   families.h         the list
#pragma once
#include <concepts>

#include "models/families/body.h"
#include "models/layers/embedding.h"
#include "models/mixers/mixers.h"
#include "models/scales/resample.h"
#include "models/scales/scale_list.h"

namespace ricci {

enum class Objective : uint8_t {
  next_token,  // at every position: the family can write text
  next_cell,   // which tokens come next, but not in which order
  label,       // one per document
};

struct FamilyTraits {
  const char* name;  // in run files: `family: topdown`
  Objective objective = Objective::next_token;
  bool mixes = false;  // its blocks are built around the mixer that a run file names, not around an attention of its own
  // The keys shared by several families that it reads.
  bool reads_layers = false;  // one number of blocks
  bool reads_stacks = false;  // a number of blocks per scale
  bool reads_scales = false;
  bool reads_down = false;

  bool is_language_model() const { return objective != Objective::label; }
  bool writes_text() const { return objective == Objective::next_token; }
};

// The keys that belong to no single family.
struct ModelKeys {
  Preset preset = Preset::gpt;
  MixerKind mixer = kind_of<Sdp>;
  int64_t vocab = 0;
  int64_t ctx = 64;
  int64_t d = 128;
  int64_t layers = 4;
  bool causal = true;
  BlockConfig block;
  EmbeddingConfig embedding;
  OutputConfig output;
  ScalesConfig scales;
  StackLayersConfig stack_layers;
  DownConfig down;
  Mixers::Configs mixers;

  // The keys of one mixer: keys.settings<Sdp>().heads
  template <Mixer M> typename M::Config& settings() { return mixers.settings<M>(); }
  template <Mixer M> const typename M::Config& settings() const { return mixers.settings<M>(); }
};

inline MixerShape shape_of(const ModelKeys& c) {
  return {.d = c.d,
      .ctx = c.ctx,
      .causal = c.causal,
      .bias = c.block.bias,
      .dropout = c.block.dropout,
      .norm_eps = c.block.norm_eps,
      .rope = {c.embedding.rope_fraction,
          c.embedding.positions == PositionKind::rope ? std::make_shared<RotaryTable>(c.embedding.rope, c.ctx) : nullptr},
      .init = {c.preset, c.layers}};
}

// The one stack of a model, and the stack over the cells of a scale.
template <Mixer M> StackConfig<M> stack_of(const ModelKeys& c, const typename M::Config& mixer) {
  return {shape_of(c), c.layers, c.embedding.positions, c.block, mixer};
}
inline StackConfig<Sdp> stack_at(const ModelKeys& c, int64_t scale, int64_t layers) {
  StackConfig<Sdp> stack{shape_of(c), layers, c.embedding.positions, c.block, c.settings<Sdp>()};
  stack.shape.ctx = c.ctx / scale;
  stack.shape.init.layers = layers;
  return stack;
}

// Adds a line if the context is shorter than a cell of `tokens` tokens.
inline void warn_of_cells(const ModelKeys& c, const char* key, int64_t tokens, const std::string& lost, std::vector<std::string>& lines) {
  if (tokens <= c.ctx) return;
  lines.push_back(format_message("model.{}: a cell of {} tokens is longer than the context of {}: {}", {key, tokens, c.ctx, lost}));
}
// The same for every scale with a stack of its own.
inline void warn_of_stacks(const ModelKeys& c, std::vector<std::string>& lines) {
  for (size_t i = 0; i < c.scales.scales.size(); ++i) warn_of_cells(c, "scales", c.scales.scales[i], "its blocks are never used", lines);
}

// A family is a struct that has
//   kTraits             above
//   Config              its own keys, listed by visit_fields; NoKeys if it has none
//   build(keys, config, made)   makes the model and calls made(model)
// and may have
//   check(keys, config)         throws for what cannot be
//   resolve(keys, config)       writes the values that follow from other keys into a copy for records
//   warn(keys, config, lines)   adds what a user should know of a config that works, a line each
//   kSeesAll                    true: `causal` is false unless a run file sets it, or the mixer can do nothing else
template <class F>
concept FamilyOfModels = requires(const ModelKeys& keys, typename F::Config& config, const Fields& field) {
  { F::kTraits } -> std::convertible_to<FamilyTraits>;
  {
    F::build(keys, config, [](auto&&) {})
    } -> std::same_as<void>;
  visit_fields(config, field);
};

}  // namespace ricci
