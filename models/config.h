// The keys of `model:` in a run file. A key that a mixer, a block or a family reads is declared beside its code; here is the list of
// them, each with the condition under which it is read.
#pragma once
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

  // The keys of one mixer or family: config.settings<Sdp>().heads, config.settings<TopDown>().shift
  template <class M> auto& settings() {
    if constexpr (Families::has<M>) return families.settings<M>();
    else return ModelKeys::settings<M>();
  }
  template <class M> const auto& settings() const { return const_cast<ModelConfig&>(*this).settings<M>(); }

  FamilyTraits traits() const { return traits_of(family); }
};

void visit_fields(ModelConfig& config, const Fields& field);

// The list for keys that some families read: those for which reads(traits) is true.
template <class Reads> Fields read_by(const Fields& field, const ModelConfig& c, const Reads& reads) {
  std::string names;
  for (const Family family : families_where(reads)) names += (names.empty() ? "family: " : ", ") + std::string(name_of(family));
  return field.when(reads(c.traits()), names);
}

// Gives the keys marked (preset) or (family) the defaults of the preset and the family. To be called on a config whose other
// keys still have theirs.
void apply_preset(ModelConfig& config);

// Error: the first value that cannot be, as "model.heads: 3 does not divide d = 64". vocab must be known by now.
void check(const ModelConfig& config);

// Warnings about a config that can be trained, a line each: levels that reach less than the context, scales that have
// no cells.
std::vector<std::string> warnings(const ModelConfig& config);

// A copy with the values that follow from other keys: ff; if scales are read, their blocks, windows and heads. Only for records and for
// comparisons of configs, because a model computes these values itself.
ModelConfig resolved(ModelConfig config);

}  // namespace ricci
