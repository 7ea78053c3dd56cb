// Other forms of a text, by ICU. The text must be valid UTF-8.
#pragma once
#include <string>
#include <string_view>

namespace ricci {

// Normalisation form C: an accent and its letter become one character where there is one.
std::string compose_characters(std::string_view text);

// Whether form C of a text with these two neighbours is that of both sides, one behind the other, and has the two as they are.
bool composes_apart(char32_t before, char32_t behind);

// Normalisation form D: a letter with an accent becomes the letter and the accent.
std::string decompose_characters(std::string_view text);

// Appends the lower case of a character, which may be several: that of U+0130 is an i and a dot. Languages do not matter.
void append_lower_case(char32_t code, std::string& text);

}  // namespace ricci
