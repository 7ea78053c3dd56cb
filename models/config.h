// What a model is: the keys of `model:` in a run file. A key that a mixer, a block or a family reads stands beside its code;
// here is the list of them, and which ones the chosen model reads.
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "core/choice.h"
#include "core/fields.h"
#include "models/families/families.h"

namespace ricci {

struct ModelConfig : ModelKeys {
  Family family = family_of<Decoder>;
  Families::Configs families;

  // The keys of one mixer or family: config.of<Sdp>().heads, config.of<TopDown>().shift
  template <class M> auto& of() {
    if constexpr (Families::has<M>) return families.of<M>();
    else return ModelKeys::of<M>();
  }
  template <class M> const auto& of() const { return const_cast<ModelConfig&>(*this).of<M>(); }

  FamilyTraits traits() const { return traits_of(family); }
  bool operator==(const ModelConfig&) const = default;
};

// Keys that some families read: those for which reads(traits) is true.
template <class Field, class Reads> ReadWhen<Field> read_by(Field& field, const ModelConfig& c, const Reads& reads) {
  std::string by;
  for (const Family family : families_where(reads)) by += (by.empty() ? "family: " : ", ") + std::string(name_of(family));
  return read_when(field, reads(c.traits()), by);
}

template <std::same_as<ModelConfig> Config, class Field> void visit_fields(Config& c, Field&& field) {
  field("family", c.family, "what is built", decides());
  field("preset", c.preset, "gives the keys marked (preset) their defaults, and the initial weights", decides());
  field("mixer", c.mixer, "how positions hear from each other", decides());
  field("vocab", c.vocab, "size of the vocabulary; 0: that of the tokenizer");
  field("ctx", c.ctx, "longest context, in tokens");
  field("d", c.d, "width of the model");
  auto single = read_by(field, c, [](const FamilyTraits& f) { return f.reads_layers; });
  single("layers", c.layers, "blocks");
  field("causal", c.causal, "no token sees a later one (family: false for a classifier, unless its mixer is causal in itself)");
  Mixers::each(
      [&]<class M>() { visit_fields(c.template of<M>(), read_when(field, c.mixer == kind_of<M>, std::string("mixer: ") + M::kName)); });
  visit_fields(c.block, field);
  visit_fields(c.embedding, field);
  visit_fields(c.output, read_by(field, c, [](const FamilyTraits& f) { return f.is_language_model(); }));
  visit_fields(c.scales, read_by(field, c, [](const FamilyTraits& f) { return f.reads_scales; }));
  visit_fields(c.stack_layers, read_by(field, c, [](const FamilyTraits& f) { return f.reads_stacks; }));
  visit_fields(c.down, read_by(field, c, [](const FamilyTraits& f) { return f.reads_down; }));
  Families::each([&]<class F>() {
    visit_fields(c.template of<F>(), read_when(field, c.family == family_of<F>, std::string("family: ") + F::kTraits.name));
  });
}

// Gives the keys marked (preset) or (family) the defaults of the preset and the family. To be called on a config whose other
// keys still have theirs.
void apply_preset(ModelConfig& config);

// Error: the first value that cannot be, as "model.heads: 3 does not divide d = 64". vocab must be known by now.
void check(const ModelConfig& config);

// What a user should know of a config that can be trained, a line each: levels that hear less than the context, scales that have
// no cells.
std::vector<std::string> warnings(const ModelConfig& config);

// Fills in what follows from other keys: ff; where scales are read, their blocks, windows and heads.
void resolve(ModelConfig& config);

}  // namespace ricci
