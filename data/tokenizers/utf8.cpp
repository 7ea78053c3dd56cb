// UTF-8 decoding and encoding, one character at a time.
#include "data/tokenizers/utf8.h"

#include <algorithm>

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

// Bytes of the longest piece at `at` that begins a character but does not complete it; 1 where none does.
size_t beginning_bytes(std::string_view text, size_t at) {
  const size_t bytes = announced_bytes(static_cast<unsigned char>(text[at]));
  size_t length = 1;
  while (length + 1 < bytes && at + length < text.size() && continues(text[at + length])) {
    // The second byte decides about overlong forms, surrogates and what is beyond the last code point.
    const auto first = static_cast<unsigned char>(text[at]), second = static_cast<unsigned char>(text[at + 1]);
    const bool wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) || (first == 0xf0 && second < 0x90) ||
                       (first == 0xf4 && second > 0x8f);
    if (wrong) break;
    ++length;
  }
  return length;
}

}  // namespace

Utf8Character decode_utf8(std::string_view text, size_t at) {
  static constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto first = static_cast<unsigned char>(text[at]);
  const size_t bytes = announced_bytes(first);
  if (bytes == 1) return {first, 1};
  if (bytes == 0 || at + bytes > text.size()) return {};
  char32_t code = first & (0xffu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if (!continues(text[at + i])) return {};
    code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3fu);
  }
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < smallest[bytes] || code > kLargestCodePoint || surrogate) return {};
  return {code, bytes};
}

Utf8Character decode_utf8_before(std::string_view text, size_t at) {
  size_t start = at;
  while (start > 0 && at - start < 4) {
    --start;
    if (!continues(text[start])) break;
  }
  const Utf8Character character = start < at ? decode_utf8(text, start) : Utf8Character();
  return character.bytes == at - start ? character : Utf8Character();
}

void append_utf8(char32_t code, std::string& text) {
  if (code < 0x80) {
    text += static_cast<char>(code);
    return;
  }
  const int continuations = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static constexpr char32_t mark_of_first[] = {0, 0xc0, 0xe0, 0xf0};  // a leading 1 for each byte of the character
  text += static_cast<char>(mark_of_first[continuations] | code >> (6 * continuations));
  for (int i = continuations - 1; i >= 0; --i) text += static_cast<char>(0x80u | (code >> (6 * i) & 0x3fu));
}

size_t complete_utf8_prefix(std::string_view text) {
  const size_t reach = std::min<size_t>(text.size(), 3);
  for (size_t back = 1; back <= reach; ++back) {
    const size_t start = text.size() - back;
    if (!continues(text[start])) return announced_bytes(static_cast<unsigned char>(text[start])) > back ? start : text.size();
  }
  return text.size();
}

void check_utf8(const char* who, std::string_view text, int64_t offset) {
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Utf8Character character = decode_utf8(text, at);
    if (character.bytes == 0)
      fail("{}: byte {} (value 0x{:02x}) is not valid UTF-8",
          {who, offset + static_cast<int64_t>(at), static_cast<unsigned char>(text[at])});
    at += character.bytes;
  }
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string valid;
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = decode_utf8(text, at);
    if (character.bytes > 0) {
      valid += text.substr(at, character.bytes);
      at += character.bytes;
    } else {
      valid += "\xef\xbf\xbd";
      at += beginning_bytes(text, at);
    }
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

}  // namespace ricci
