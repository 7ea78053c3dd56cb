// Character classes and normalization, from ICU's tables of the Unicode standard. Texts must be valid UTF-8.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace ricci {

// The bits of a class.
namespace unicode {
inline constexpr uint8_t letter = 1;       // \p{L}
inline constexpr uint8_t number = 2;       // \p{N}
inline constexpr uint8_t space = 4;        // \s: the property White_Space
inline constexpr uint8_t punctuation = 8;  // \p{P}, and all ASCII signs, also $ + < = > ^ ` | ~
inline constexpr uint8_t nonspacing = 16;  // \p{Mn}: accents above or below a letter
inline constexpr uint8_t other = 32;       // control, format and private use; unassigned characters can become letters later
inline constexpr uint8_t ideograph = 64;   // a Chinese character, as defined by BERT
}  // namespace unicode

// The class of every code point. The table is filled on first use, in a millisecond.
const uint8_t* unicode_classes();

// White space of Python's str: \s and four ASCII separators.
bool is_python_space(char32_t code);

// \w: a letter, a mark, a decimal digit, a connector such as _, or a joiner.
bool is_word_character(char32_t code);

// Normalization form C: an accent and its letter become one character if Unicode has it.
std::string compose_characters(std::string_view text);

// True if a text can be cut between these two characters before it is composed: form C keeps both unchanged.
bool composes_apart(char32_t before, char32_t after);

// Normalization form D: a letter with an accent becomes the letter and the accent.
std::string decompose_characters(std::string_view text);

// Appends the lower-case form of a character, independently of the language. The form can be two characters: U+0130 becomes an i and a dot.
void append_lower_case(char32_t code, std::string& text);

}  // namespace ricci
