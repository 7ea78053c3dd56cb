// UTF-8 as RFC 3629 defines it (no overlong forms, no surrogates, nothing above U+10FFFF), and conversion from other encodings. All other
// code uses only valid UTF-8.
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

// The character at byte `position` of the text.
Utf8Character decode_utf8(std::string_view text, size_t position);

// The character that ends before byte `position`.
Utf8Character decode_utf8_before(std::string_view text, size_t position);

// Appends the 1 to 4 bytes of a valid code point.
void append_utf8(char32_t code, std::string& text);

// Length of the text without an incomplete last character. A stream can be cut here.
size_t complete_utf8_prefix(std::string_view text);

// Error: the text is not UTF-8. `offset` is its position in the file, for a message such as "a.txt: byte 7 (value 0xe9) is not valid
// UTF-8".
void check_utf8(const std::string& who, std::string_view text, int64_t offset);

// Replaces each longest prefix of an incomplete character, and every other invalid byte, with U+FFFD, as the Unicode standard recommends.
std::string replace_invalid_utf8(std::string_view text);
// The text with each `part` replaced by `by`, from left to right.
std::string replaced(std::string_view text, std::string_view part, std::string_view by);

// Counts characters: the bytes that do not continue a character.
int64_t count_characters(std::string_view text);

// Describes a character for messages, such as 'é' (U+00E9), or only U+000A if it cannot be printed.
std::string describe_character(char32_t code);

// File encodings. utf8 and latin1 are texts: NUL is an error, line ends become \n and a byte order mark is removed, so tokens do not depend
// on the program that saved the text. bytes: the file is not changed.
enum class Encoding : uint8_t { utf8, latin1, bytes };
constexpr auto choices(Encoding) { return std::array{"utf-8", "latin-1", "bytes"}; }

// Decodes one file, block by block, to UTF-8.
class TextDecoder {
 public:
  explicit TextDecoder(Encoding encoding) : encoding_(encoding) {}
  // Appends the text of the block. An incomplete character and a last \r are held until the next block. Error: a byte is invalid in the
  // encoding; the message contains the file name, the position and a guess at the encoding.
  void append(std::string_view block, const std::string& name, std::string& text);
  // Ends the file: appends the held bytes. The next block starts a new file. Error: the file ends inside a character.
  void finish(const std::string& name, std::string& text);

 private:
  void check(std::string_view bytes, const std::string& name) const;
  Encoding encoding_;
  std::string held_;
  int64_t offset_ = 0;  // position of held_ in the file
};

}  // namespace ricci
