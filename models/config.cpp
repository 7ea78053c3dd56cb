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

Fields read_by(const Fields& field, const ModelConfig& c, std::initializer_list<Family> families) {
  bool is_read = false;
  std::string names;
  for (Family family : families) {
    is_read |= c.family == family;
    names += (names.empty() ? "family: " : ", ") + std::string(name_of(family));
  }
  return field.when(is_read, names);
}

void visit_fields(ModelConfig& c, const Fields& field) {
  field("family", c.family, "what is built").decides();
  field("preset", c.preset, "gives the keys marked (preset) their defaults, and the initial weights").decides();
  field("mixer", c.mixer, "how positions hear from each other").decides();
  field("vocab", c.vocab, "size of the vocabulary; 0: that of the tokenizer").in(1, kLargestSize);
  field("ctx", c.ctx, "longest context, in tokens").in(1, kLargestSize);
  field("d", c.d, "width of the model").in(1, kLargestSize);
  const Fields single = read_by(field, c, {Family::decoder, Family::classifier, Family::retina, Family::coarse});
  single("layers", c.layers, "blocks").in(1, kMaxLayers);
  field("causal", c.causal, "no token sees a later one (family: false for a classifier, unless its mixer is causal in itself)").follows();
  Mixers::each([&]<class M>() { visit_fields(c.of<M>(), field.when(c.mixer == kind_of<M>, std::string("mixer: ") + M::kName)); });
  visit_fields(c.block, field);
  visit_fields(c.embedding, field);
  visit_fields(c.output, read_by(field, c, kLanguageModels));
  visit_fields(c.classifier, read_by(field, c, {Family::classifier}));
  visit_fields(c.scales, read_by(field, c, {Family::topdown, Family::bottomup, Family::retina}));
  visit_fields(c.stack_layers, read_by(field, c, {Family::topdown, Family::bottomup}));
  visit_fields(c.down, read_by(field, c, {Family::topdown, Family::bottomup, Family::retina, Family::coarse}));
  visit_fields(c.topdown, read_by(field, c, {Family::topdown}));
  visit_fields(c.bottomup, read_by(field, c, {Family::bottomup}));
  visit_fields(c.retina, read_by(field, c, {Family::retina}));
  visit_fields(c.coarse, read_by(field, c, {Family::coarse}));
}

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
  if (has_list) check(c.scales);
  if (has_stacks) check(c.stack_layers, c.scales);
  if (c.family == Family::topdown) check(c.topdown, c.scales);
  if (c.family == Family::bottomup) check_bottom_up(c.scales, c.of<Sdp>());
  if (c.family == Family::retina) check(c.retina, c.scales, c.of<Sdp>());
}

}  // namespace

void check(const ModelConfig& c) {
  ModelConfig copy = c;
  std::vector<Field> fields;
  visit_fields(copy, Fields(fields).section("model"));
  check_bounds(fields);
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
    std::string lost = "the heads of this scale give zero";
    if (c.family == Family::coarse) lost = "the model says nothing and learns nothing";
    else if (c.family != Family::retina) lost = format_message("its {} blocks are never used", {c.stack_layers.of(c.scales)[i]});
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
