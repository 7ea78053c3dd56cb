// The word that somebody may have meant.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ricci::apps {

// The least number of letters inserted, removed or replaced that turns a into b (Levenshtein distance, in bytes).
size_t edit_distance(std::string_view a, std::string_view b);

// The known word with the least distance, the first of several; empty where none is known.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace ricci::apps
