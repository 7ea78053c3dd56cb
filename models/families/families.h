// The list of families. A run file chooses one by name. To add a family, write its header and append its name here.
#pragma once
#include <vector>

#include "models/families/bottomup.h"
#include "models/families/classifier.h"
#include "models/families/coarse.h"
#include "models/families/language_model.h"
#include "models/families/retina.h"
#include "models/families/topdown.h"

namespace ricci {

using Families = TypeList<Decoder, Classifier, TopDown, BottomUp, Retina, Coarse>;

// The run-time choice: an index into the list.
enum class Family : uint8_t {};
constexpr auto choices(Family) {
  return Families::map([]<FamilyOfModels F>() { return F::kTraits.name; });
}
template <class F> inline constexpr Family family_of = static_cast<Family>(Families::number_of<F>());

inline FamilyTraits traits_of(Family family) {
  static constexpr auto all = Families::map([]<class F>() { return F::kTraits; });
  return all[static_cast<size_t>(family)];
}

// The families that satisfy is(traits), in order.
template <class Is> std::vector<Family> families_where(const Is& is) {
  std::vector<Family> all;
  Families::each([&]<class F>() {
    if (is(F::kTraits)) all.push_back(family_of<F>);
  });
  return all;
}
inline std::vector<Family> language_models() {
  return families_where([](const FamilyTraits& f) { return f.is_language_model(); });
}
inline std::vector<Family> text_writers() {
  return families_where([](const FamilyTraits& f) { return f.writes_text(); });
}

}  // namespace ricci
