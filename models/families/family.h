// The concept of a family: the structure of a complete model. In reading order:
//   body.h                      a body, the embedding before it and the map after it
//   language_model.h            a body that predicts the next token; the family decoder
//   topdown.h, bottomup.h, retina.h                other bodies
//   classifier.h, coarse.h                         other objectives
//   families.h                  the list
#pragma once
#include <concepts>

#include "models/families/body.h"
#include "models/layers/embedding.h"
#include "models/mixers/mixers.h"
#include "models/mixers/per_layer.h"
#include "models/scales/resample.h"
#include "models/scales/scale_list.h"
#include "ops/scales/cells.h"

namespace ricci {

enum class Objective : uint8_t {
  next_token,  // at every position: the family can write text
  next_cell,   // the tokens of the next cell, in any order
  label,       // one class per document
};

struct FamilyTraits {
  const char* name;  // in run files: `family: topdown`
  Objective objective = Objective::next_token;
  bool mixes = false;  // its blocks use the run file's mixer, not always attention
  // The shared keys that the family uses:
  bool reads_layers = false;  // `layers`, one number
  bool reads_stacks = false;  // `layers`, one number per scale
  bool reads_scales = false;
  bool reads_down = false;

  bool is_language_model() const { return objective != Objective::label; }
  bool writes_text() const { return objective == Objective::next_token; }
};

// The keys shared by all families.
struct ModelKeys {
  Preset preset = Preset::gpt;
  ChoiceList<MixerKind> mixer = kind_of<Sdp>;  // one mixer, or a list that is repeated over the layers
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

  // The keys of one mixer, for example keys.settings<Sdp>().heads
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

// Calls f.operator()<M>() for every mixer that a layer uses.
template <class F> void each_mixer(const ModelKeys& c, const F& f) {
  Mixers::each([&]<class M>() {
    if (c.mixer.contains(kind_of<M>)) f.template operator()<M>();
  });
}

// The config of a model's only stack.
template <Mixer M> StackConfig<M> stack_of(const ModelKeys& c, const typename M::Config& mixer) {
  return {shape_of(c), c.layers, c.embedding.positions, c.block, mixer};
}
// Calls made(stack) with a stack that uses the mixer, or the mixers, of the run file.
template <class Made> void make_stack(const ModelKeys& c, const Made& made) {
  if (c.mixer.size() > 1) return made(Stack<PerLayer>(stack_of<PerLayer>(c, {c.mixer, c.mixers})));
  Mixers::call_for(c.mixer[0], [&]<class M>() { made(Stack<M>(stack_of<M>(c, c.settings<M>()))); });
}
inline StackConfig<Sdp> stack_at(const ModelKeys& c, int64_t scale, int64_t layers) {
  StackConfig<Sdp> stack{shape_of(c), layers, c.embedding.positions, c.block, c.settings<Sdp>()};
  stack.shape.ctx = c.ctx / scale;
  stack.shape.init.layers = layers;
  return stack;
}

// The number of text tokens in each sequence; empty means all. In a batch without lengths, a text ends where only targets of -1 follow.
inline Tensor text_lengths_of(const Batch& batch) {
  if (batch.lengths_b || !batch.targets) return batch.lengths_b;
  check_targets(batch);
  return text_lengths(batch.targets);
}

// The loss of a coarse scale: its cells predict the tokens of the next cell in any order (a bag of words). It is the mean nats per token of
// the next cell, over the cells followed by a complete cell, as an f64 scalar. h_bmd is the output of the scale's blocks.
inline Tensor bag_loss(const Arg& h_bmd, const Output& output, const Table& tok, const Batch& batch, int64_t scale) {
  return bag_cross_entropy(output.logits(h_bmd, tok), batch.ids_bc, scale, text_lengths_of(batch));
}

// Adds a warning if the context is shorter than a cell of `tokens` tokens.
inline void warn_of_cells(const ModelKeys& c, const char* key, int64_t tokens, const std::string& lost, std::vector<std::string>& lines) {
  if (tokens <= c.ctx) return;
  lines.push_back(format_message("model.{}: a cell of {} tokens is longer than the context of {}, so {}", {key, tokens, c.ctx, lost}));
}
// Calls warn_of_cells for every scale of a family with stacks.
inline void warn_of_stacks(const ModelKeys& c, std::vector<std::string>& lines) {
  for (size_t i = 0; i < c.scales.scales.size(); ++i) warn_of_cells(c, "scales", c.scales.scales[i], "its blocks are never used", lines);
}

// A family is a struct with
//   kTraits             above
//   Config              its keys, listed by visit_fields; NoKeys if it has none
//   build(keys, config, made)   makes the model and calls made(model)
// and, optionally,
//   check(keys, config)         throws if the config is impossible
//   resolve(keys, config)       writes values that follow from other keys into a copy for records
//   warn(keys, config, lines)   adds a line about a config that works but is surprising
//   kSeesAll                    true: `causal` is false by default, unless the mixer must be causal
template <class F>
concept FamilyOfModels = requires(const ModelKeys& keys, typename F::Config& config, const Fields& field) {
  { F::kTraits } -> std::convertible_to<FamilyTraits>;
  {
    F::build(keys, config, [](auto&&) {})
    } -> std::same_as<void>;
  visit_fields(config, field);
};

}  // namespace ricci
