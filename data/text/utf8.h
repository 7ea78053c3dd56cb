// UTF-8 by the letter of RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. And texts in other encodings as UTF-8.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/choice.h"
#include "core/error.h"

namespace ricci {

inline constexpr char32_t kLargestCodePoint = 0x10ffff;

struct Utf8Character {
  char32_t code = 0;
  size_t bytes = 0;  // 0 if no valid character starts here
};

// The character that starts at byte `position`, which is inside the text.
Utf8Character decode_utf8(std::string_view text, size_t position);

// The character whose bytes end before byte `position`, which may be the end of the text.
Utf8Character decode_utf8_before(std::string_view text, size_t position);

// Appends the 1 to 4 bytes of a valid code point.
void append_utf8(char32_t code, std::string& text);

// Length of the text without a last character whose bytes are not all there yet: where a stream may be cut.
size_t complete_utf8_prefix(std::string_view text);

// Error: the text, which starts at byte `offset` of a whole, is not UTF-8: "a.txt: byte 7 (value 0xe9) is not valid UTF-8".
void check_utf8(const std::string& who, std::string_view text, int64_t offset);

// The text with U+FFFD in place of what is not UTF-8: one for each longest piece that begins a character, and for each other
// byte, as the Unicode standard recommends and Python and Rust do.
std::string replace_invalid_utf8(std::string_view text);

// Number of characters: the bytes that do not continue one. Also defined for text that is not UTF-8.
int64_t count_characters(std::string_view text);

// For messages: 'é' (U+00E9), or U+000A alone where the character does not print on the line.
std::string describe_character(char32_t code);

// The encodings of files. utf8 and latin1 are texts: they have no NUL, their line ends become \n, and a mark at the start of UTF-8 is left
// out, because the same text would otherwise have other tokens after it was saved by another program. bytes: as they are.
enum class Encoding : uint8_t { utf8, latin1, bytes };
constexpr auto choices(Encoding) { return std::array{"utf-8", "latin-1", "bytes"}; }

// One file, block by block, as UTF-8.
class TextDecoder {
 public:
  explicit TextDecoder(Encoding encoding) : encoding_(encoding) {}
  // Appends the text of the block. What the next block decides waits for it: a character that is not complete yet, and \r.
  // Error: bytes that are not in the encoding, with the name of the file, their place in it, and what they look like.
  void append(std::string_view block, const std::string& name, std::string& text);
  // The end of the file: what waited is appended, and the next block begins another file. Error: it ends inside a character.
  void finish(const std::string& name, std::string& text);

 private:
  void check(std::string_view bytes, const std::string& name) const;
  Encoding encoding_;
  std::string held_;
  int64_t offset_ = 0;  // the place of held_ in the file
};

}  // namespace ricci
