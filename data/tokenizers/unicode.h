// The Unicode standard, as ICU has it: classes of characters, and other forms of texts, which must be valid UTF-8.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace ricci {

// Bits of a class, the kind of character of a code point.
namespace unicode {
inline constexpr uint8_t letter = 1;       // \p{L}
inline constexpr uint8_t number = 2;       // \p{N}
inline constexpr uint8_t space = 4;        // \s: the property White_Space
inline constexpr uint8_t punctuation = 8;  // \p{P}, and all of ASCII's signs, $ + < = > ^ ` | ~ among them
inline constexpr uint8_t nonspacing = 16;  // \p{Mn}: accents that are over or under a letter
inline constexpr uint8_t other = 32;       // control, format and private use; not the unassigned ones, which may become letters
inline constexpr uint8_t ideograph = 64;   // a Chinese character, as BERT defines it
}  // namespace unicode

// The classes of all code points, indexed by code point. Filled on first use, in a millisecond.
const uint8_t* unicode_classes();

// \w: a letter, a mark, a decimal digit, a connector as _, or a joiner.
bool is_word_character(char32_t code);

// Normalisation form C: an accent and its letter become one character where there is one.
std::string compose_characters(std::string_view text);

// True where form C of a text with these two neighbours is form C of both sides, one after the other, and has the two as they are.
bool composes_apart(char32_t before, char32_t after);

// Normalisation form D: a letter with an accent becomes the letter and the accent.
std::string decompose_characters(std::string_view text);

// Appends the lower case of a character, which may be several: U+0130 becomes an i and a dot. Languages do not matter.
void append_lower_case(char32_t code, std::string& text);

}  // namespace ricci
