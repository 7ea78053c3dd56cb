// The keys of `model:` in a run file. Each key is declared next to the mixer, block or family that uses it, with its bounds and help. This
// file collects them and adds the conditions for their use.
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

  // The keys of one mixer or family, for example config.settings<Sdp>().heads or config.settings<TopDown>().shift
  template <class M> auto& settings() {
    if constexpr (Families::has<M>) return families.settings<M>();
    else return ModelKeys::settings<M>();
  }
  template <class M> const auto& settings() const { return const_cast<ModelConfig&>(*this).settings<M>(); }

  FamilyTraits traits() const { return traits_of(family); }
};

void visit_fields(ModelConfig& config, const Fields& field);

// Returns Fields for keys that apply only to families that satisfy reads(traits).
template <class Reads> Fields read_by(const Fields& field, const ModelConfig& c, const Reads& reads) {
  std::string names;
  for (const Family family : families_where(reads)) names += (names.empty() ? "family: " : ", ") + std::string(name_of(family));
  return field.when(reads(c.traits()), names);
}

// Sets the defaults of the keys marked (preset) or (family). It overwrites values that are already set, so call it first.
void apply_preset(ModelConfig& config);

// Throws Error for the first invalid value, such as "model.heads: 3 does not divide d = 64". `vocab` must already be known.
void check(const ModelConfig& config);

// Warnings about a config that works but is surprising, such as levels that span less than the context, or scales without cells.
std::vector<std::string> warnings(const ModelConfig& config);

// Returns a copy that also contains the values that follow from other keys, such as ff. It is only for records and comparisons of configs;
// a model computes these values itself.
ModelConfig resolved(ModelConfig config);

}  // namespace ricci
