// The word that somebody may have meant, and the key.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/fields.h"

namespace ricci::apps {

// The least number of slips that turns a into b, in bytes: a letter inserted, removed or replaced, or two neighbours swapped (the
// optimal string alignment distance).
size_t edit_distance(std::string_view a, std::string_view b);

// Whether a word of so many letters may be a slip of the pen for another at this distance: one letter in four may be wrong.
constexpr bool is_near(size_t distance, size_t letters) { return distance <= (letters + 2) / 4; }

// ", the nearest is 'heads'": the known word with the least distance, the first of several. Nothing where none is near.
std::string nearest_note(std::string_view word, const std::vector<std::string>& known);

// What to say behind an unknown key: how it is called here (kOtherNames), or which known key or section is near. One in
// another section is as near as one wrong letter. Of two that are equally near neither is told: "; --help-config prints every key".
std::string suggestion_for(const std::string& key, const std::vector<Field>& fields);

// What nanoGPT and Hugging Face's transformers call our keys.
struct OtherName {
  std::string_view there, here;
};
std::span<const OtherName> other_names();

}  // namespace ricci::apps
