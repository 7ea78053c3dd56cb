// The word, or the key, that a user may have meant.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/fields.h"

namespace ricci::apps {

// ", the nearest is 'heads'": the known word with the least distance, the first of several. Empty if none is near.
std::string nearest_note(std::string_view word, const std::vector<std::string>& known);

// The end of an error about an unknown key: its name here (other_names), or the known key or section that is near. One in
// another section is as near as one wrong letter. Of two that are equally near neither is named: "; --help-config prints every key".
std::string suggestion_for(const std::string& key, const std::vector<Field>& fields);

// Names that nanoGPT and Hugging Face's transformers have for our keys.
struct OtherNames {
  std::string_view here;
  std::vector<std::string_view> there;
};
const std::vector<OtherNames>& other_names();

}  // namespace ricci::apps
