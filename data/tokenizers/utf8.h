// UTF-8 by the letter of RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ricci {

inline constexpr char32_t kLargestCodePoint = 0x10ffff;

struct Utf8Character {
  char32_t code = 0;
  size_t bytes = 0;  // 0: no valid character starts here
};

// The character that starts at byte `at`, which lies inside the text.
Utf8Character decode_utf8(std::string_view text, size_t at);

// The character whose bytes end in front of byte `at`, which may be the end of the text.
Utf8Character decode_utf8_before(std::string_view text, size_t at);

// Appends the 1 to 4 bytes of a valid code point.
void append_utf8(char32_t code, std::string& text);

// Length of the text without a last character whose bytes are not all there yet: where a stream may be cut.
size_t complete_utf8_prefix(std::string_view text);

// Error where the text, which starts at byte `offset` of a whole, is not UTF-8: "char tokenizer: byte 7 (value 0xe9) is not ...".
void check_utf8(const char* who, std::string_view text, int64_t offset);

// The text with U+FFFD in place of what is not UTF-8: one for each longest piece that begins a character, and for each other
// byte, as the Unicode standard recommends and Python and Rust do.
std::string replace_invalid_utf8(std::string_view text);

// Number of characters: the bytes that do not continue one. Also defined for text that is not UTF-8.
int64_t count_characters(std::string_view text);

// For messages: 'é' (U+00E9), or U+000A alone where the character does not print on the line.
std::string describe_character(char32_t code);

}  // namespace ricci
