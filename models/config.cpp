// The keys of a model and their relations.
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

void visit_fields(ModelConfig& c, const Fields& field) {
  field("family", c.family, "what is built").decides();
  field("preset", c.preset, "gives the keys marked (preset) their defaults, and the initial weights").decides();
  field("mixer", c.mixer, "how positions hear from each other").decides();
  field("vocab", c.vocab, "size of the vocabulary; 0: as the tokenizer has it").in(1, kLargestSize).follows();
  field("ctx", c.ctx, "longest context, in tokens").in(1, kLargestSize);
  field("d", c.d, "width of the model").in(1, kLargestSize);
  const Fields single = read_by(field, c, [](const FamilyTraits& f) { return f.reads_layers; });
  single("layers", c.layers, "blocks").in(1, kMaxLayers);
  field("causal", c.causal, "no token sees a later one (family: false for a classifier, unless its mixer is causal in itself)").follows();
  Mixers::each([&]<class M>() { visit_fields(c.of<M>(), field.when(c.mixer == kind_of<M>, std::string("mixer: ") + M::kName)); });
  visit_fields(c.block, field);
  visit_fields(c.embedding, field);
  visit_fields(c.output, read_by(field, c, [](const FamilyTraits& f) { return f.is_language_model(); }));
  visit_fields(c.scales, read_by(field, c, [](const FamilyTraits& f) { return f.reads_scales; }));
  visit_fields(c.stack_layers, read_by(field, c, [](const FamilyTraits& f) { return f.reads_stacks; }));
  visit_fields(c.down, read_by(field, c, [](const FamilyTraits& f) { return f.reads_down; }));
  Families::each(
      [&]<class F>() { visit_fields(c.of<F>(), field.when(c.family == family_of<F>, std::string("family: ") + F::kTraits.name)); });
}

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
  ModelConfig copy = c;
  std::vector<Field> fields;
  visit_fields(copy, Fields(fields).section("model"));
  check_bounds(fields);
  Mixers::at(static_cast<size_t>(c.mixer), [&]<class M>() { check(c.of<M>(), shape_of(c)); });
  if (!family.mixes && c.mixer != kind_of<Sdp>)
    fail("model.mixer: {}, but family {} has an attention of its own, expected {}", {name_of(c.mixer), family.name, Sdp::kName});
  if (!family.mixes && !c.causal) fail("model.causal: false, but family {} reads cells only when they are complete", {family.name});
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
