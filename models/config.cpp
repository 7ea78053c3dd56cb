// The list of all model keys, the defaults of presets, and the checks that concern more than one struct.
#include "models/config.h"

#include <type_traits>

namespace ricci {

namespace {

bool only_causal(const ModelKeys& c) {
  bool only = false;
  each_mixer(c, [&]<class M>() {
    if constexpr (requires { M::kOnlyCausal; }) only |= M::kOnlyCausal;
  });
  return only;
}

// Errors: positions are rotary, but no mixer rotates queries and keys; rope_low is not below rope_high.
void check_rope(const ModelKeys& c) {
  const EmbeddingConfig& embedding = c.embedding;
  if (embedding.positions != PositionKind::rope) return;
  bool turns = false;
  each_mixer(c, [&]<class M>() {
    turns |= requires { M::kTurns; };
  });
  if (!turns) fail("model.positions: rope, but mixer {} does not rotate queries and keys; only {} does", {names_of(c.mixer), Sdp::kName});
  if (embedding.rope.scaling == RopeScaling::llama3 && embedding.rope.low >= embedding.rope.high)
    fail("model.rope_low: {}, expected less than rope_high = {}", {embedding.rope.low, embedding.rope.high});
}

}  // namespace

void visit_fields(ModelConfig& c, const Fields& field) {
  field("family", c.family, "structure of the model").decides();
  field("preset", c.preset, "sets the initial weights and the defaults of the keys marked (preset)").decides();
  field("mixer", c.mixer, "how positions exchange information; a list is repeated over the layers").decides();
  field("vocab", c.vocab, "vocabulary size (0: the tokenizer's)").in(1, kLargestSize).follows();
  field("ctx", c.ctx, "longest context, in tokens").in(1, kLargestSize);
  field("d", c.d, "width of the model").in(1, kLargestSize);
  const Fields single = read_by(field, c, [](const FamilyTraits& f) { return f.reads_layers; });
  single("layers", c.layers, "number of blocks").in(1, kMaxLayers);
  field("causal", c.causal, "no position depends on later positions (family: false for a classifier if its mixer allows it)").follows();
  Mixers::each(
      [&]<class M>() { visit_fields(c.settings<M>(), field.when(c.mixer.contains(kind_of<M>), std::string("mixer: ") + M::kName)); });
  visit_fields(c.block, field);
  visit_fields(c.embedding, field);
  visit_fields(c.output, read_by(field, c, [](const FamilyTraits& f) { return f.is_language_model(); }));
  visit_fields(c.scales, read_by(field, c, [](const FamilyTraits& f) { return f.reads_scales; }));
  visit_fields(c.stack_layers, read_by(field, c, [](const FamilyTraits& f) { return f.reads_stacks; }));
  visit_fields(c.down, read_by(field, c, [](const FamilyTraits& f) { return f.reads_down; }));
  Families::each(
      [&]<class F>() { visit_fields(c.settings<F>(), field.when(c.family == family_of<F>, std::string("family: ") + F::kTraits.name)); });
}

void apply_preset(ModelConfig& c) {
  Families::call_for(c.family, [&]<class F>() {
    if constexpr (requires { F::kSeesAll; }) c.causal = only_causal(c);
  });
  if (c.preset == Preset::gpt) return;  // the defaults of the structs
  if (c.preset == Preset::llama) {
    c.block.activation = Activation::silu;
    c.block.gated = c.block.ff_by_thirds = true;
    c.block.bias = c.block.norm_bias = false;
    c.block.norm_kind = NormKind::rms;
    c.embedding.positions = PositionKind::rope;
    return;
  }
  c.block.norm = Norm::post;
  c.block.activation = Activation::relu;
  c.embedding.positions = PositionKind::sinusoidal;
  c.embedding.scale_embedding = true;
  c.output = {.tie = false, .head_bias = true};
}

void check(const ModelConfig& c) {
  const FamilyTraits family = c.traits();
  ModelConfig copy = c;
  std::vector<Field> fields;
  visit_fields(copy, Fields(fields).section("model"));
  check_bounds(fields);
  check_rope(c);
  each_mixer(c, [&]<class M>() {
    if constexpr (requires { check(c.settings<M>(), shape_of(c)); }) check(c.settings<M>(), shape_of(c));
    else static_assert(std::is_same_v<typename M::Config, NoKeys>, "a mixer with keys has a check");
  });
  if (!family.mixes && c.mixer != kind_of<Sdp>)
    fail("model.mixer: {}, but family {} always uses attention; expected {}", {names_of(c.mixer), family.name, Sdp::kName});
  if (!family.mixes && !c.causal) fail("model.causal: false, but family {} attends only to complete cells; expected true", {family.name});
  if (family.reads_scales) check(c.scales);
  if (family.reads_stacks) check(c.stack_layers, c.scales);
  Families::call_for(c.family, [&]<class F>() {
    if constexpr (requires { F::check(c, c.settings<F>()); }) F::check(c, c.settings<F>());
  });
}

std::vector<std::string> warnings(const ModelConfig& c) {
  std::vector<std::string> all;
  each_mixer(c, [&]<class M>() {
    if constexpr (requires { warning(c.settings<M>(), shape_of(c)); })
      if (const std::string line = warning(c.settings<M>(), shape_of(c)); !line.empty()) all.push_back(line);
  });
  Families::call_for(c.family, [&]<class F>() {
    if constexpr (requires { F::warn(c, c.settings<F>(), all); }) F::warn(c, c.settings<F>(), all);
  });
  return all;
}

ModelConfig resolved(ModelConfig c) {
  c.block.ff = c.block.feed_forward(c.d);
  if (c.traits().reads_stacks) c.stack_layers.layers = c.stack_layers.per_scale(c.scales);
  Families::call_for(c.family, [&]<class F>() {
    if constexpr (requires(ModelConfig & m) { F::resolve(m, m.settings<F>()); }) F::resolve(c, c.settings<F>());
  });
  return c;
}

}  // namespace ricci
