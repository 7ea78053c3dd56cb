// Finds the word that a user probably meant.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ricci {

// The optimal string alignment distance, in bytes: the least number of edits that turn a into b. An edit inserts, removes or replaces a
// letter, or swaps two adjacent ones.
size_t edit_distance(std::string_view a, std::string_view b);
// True if a word of this length at this distance is probably a misspelling (at most one letter in four is wrong).
bool is_near(size_t distance, size_t letters);

// The nearest known word; on a tie, the first one. Empty if no word is near.
std::string nearest_of(std::string_view word, const std::vector<std::string>& known);
// This word as the end of a message: ", the nearest is 'heads'", or empty.
std::string nearest_note(std::string_view word, const std::vector<std::string>& known);

}  // namespace ricci
