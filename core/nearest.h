// The word that a user may have meant.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ricci {

// The least number of slips that turns a into b, in bytes: a letter inserted, removed or replaced, or two neighbours swapped (the
// optimal string alignment distance).
size_t edit_distance(std::string_view a, std::string_view b);
// True if a word of this length may be a slip of the pen for another at this distance: one letter in four may be wrong.
bool is_near(size_t distance, size_t letters);

// The known word with the least distance, the first of several. Empty where none is near.
std::string nearest_of(std::string_view word, const std::vector<std::string>& known);
// ", the nearest is 'heads'": that word. Nothing where none is near.
std::string nearest_note(std::string_view word, const std::vector<std::string>& known);

}  // namespace ricci
