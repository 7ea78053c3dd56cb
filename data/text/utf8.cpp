// UTF-8 decoding and encoding, one character at a time, by the macros of ICU.
#include "data/text/utf8.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace ricci {

namespace {

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0u) == 0x80u; }

// Bytes of the character that this first byte announces; 0 for a byte that starts none.
size_t announced_bytes(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  if (first >= 0xf0 && first <= 0xf4) return 4;
  return 0;
}

struct Decoded {
  UChar32 code;  // negative: no valid character starts there
  size_t bytes;  // the character has, or the longest piece that begins one but does not complete it; 1 where none does
};

Decoded decode(std::string_view text, size_t position) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data()) + position;
  const auto length = static_cast<int32_t>(std::min<size_t>(text.size() - position, U8_MAX_LENGTH));
  int32_t taken = 0;
  UChar32 code = 0;
  U8_NEXT(bytes, taken, length, code);
  return {code, static_cast<size_t>(taken)};
}

}  // namespace

Utf8Character decode_utf8(std::string_view text, size_t position) {
  const auto [code, bytes] = decode(text, position);
  return code < 0 ? Utf8Character() : Utf8Character{static_cast<char32_t>(code), bytes};
}

Utf8Character decode_utf8_before(std::string_view text, size_t position) {
  size_t start = position;
  while (start > 0 && position - start < 4) {
    --start;
    if (!continues(text[start])) break;
  }
  const Utf8Character character = start < position ? decode_utf8(text, start) : Utf8Character();
  return character.bytes == position - start ? character : Utf8Character();
}

void append_utf8(char32_t code, std::string& text) {
  char bytes[U8_MAX_LENGTH];
  int32_t length = 0;
  U8_APPEND_UNSAFE(bytes, length, static_cast<uint32_t>(code));
  text.append(bytes, static_cast<size_t>(length));
}

size_t complete_utf8_prefix(std::string_view text) {
  const size_t reach = std::min<size_t>(text.size(), 3);
  for (size_t back = 1; back <= reach; ++back) {
    const size_t start = text.size() - back;
    if (!continues(text[start])) return announced_bytes(static_cast<unsigned char>(text[start])) > back ? start : text.size();
  }
  return text.size();
}

namespace {

// The end of the ASCII characters from byte `position` on. It looks at 8 bytes together.
size_t ascii_end(std::string_view text, size_t position) {
  for (uint64_t word; position + sizeof word <= text.size(); position += sizeof word) {
    std::memcpy(&word, text.data() + position, sizeof word);
    if (word & 0x8080808080808080u) break;
  }
  while (position < text.size() && static_cast<unsigned char>(text[position]) < 0x80) ++position;
  return position;
}

}  // namespace

void check_utf8(const std::string& who, std::string_view text, int64_t offset) {
  for (size_t position = ascii_end(text, 0); position < text.size(); position = ascii_end(text, position)) {
    const size_t bytes = decode_utf8(text, position).bytes;
    if (bytes == 0)
      throw NotUtf8(format_message("{}: byte {} (value 0x{:02x}) is not valid UTF-8",
          {who, offset + static_cast<int64_t>(position), static_cast<unsigned char>(text[position])}));
    position += bytes;
  }
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string valid;
  for (size_t position = 0; position < text.size();) {
    const auto [code, bytes] = decode(text, position);
    valid += code < 0 ? "\xef\xbf\xbd" : text.substr(position, bytes);
    position += bytes;
  }
  return valid;
}

int64_t count_characters(std::string_view text) {
  int64_t count = 0;
  for (const char byte : text) count += continues(byte) ? 0 : 1;
  return count;
}

std::string describe_character(char32_t code) {
  const std::string number = format_message("U+{:04X}", {static_cast<int64_t>(code)});
  const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029;
  if (control) return number;
  std::string text = "'";
  append_utf8(code, text);
  return text + "' (" + number + ")";
}

void TextDecoder::append(std::string_view block, const std::string& name, std::string& text) {
  if (encoding_ == Encoding::bytes) text += block;
  if (encoding_ == Encoding::latin1)
    for (const char byte : block) append_utf8(static_cast<unsigned char>(byte), text);  // its code points are its bytes
  if (encoding_ != Encoding::utf8) return;
  if (!held_.empty()) block = held_.append(block);
  const size_t complete = complete_utf8_prefix(block);
  check_utf8(name, block.substr(0, complete), offset_);
  text += block.substr(0, complete);
  offset_ += static_cast<int64_t>(complete);
  held_ = std::string(block.substr(complete));
}

}  // namespace ricci
