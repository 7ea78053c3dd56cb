#include "data/text/utf8.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "data/tokenizers/id_reader.h"

namespace ricci {
namespace {

// Moves past the character at the position and returns its code. If the character is invalid, returns a negative number and moves past its
// longest valid prefix.
UChar32 decode(std::string_view text, size_t& position) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data()) + position;
  const auto length = static_cast<int32_t>(std::min<size_t>(text.size() - position, U8_MAX_LENGTH));
  int32_t taken = 0;
  UChar32 code = 0;
  U8_NEXT(bytes, taken, length, code);
  position += static_cast<size_t>(taken);
  return code;
}

// Returns the position of the first byte that is not valid UTF-8, or the length of the text.
size_t find_invalid(std::string_view text) {
  for (size_t position = 0; position < text.size();) {
    const size_t start = position;
    if (U8_IS_SINGLE(text[position])) ++position;
    else if (decode(text, position) < 0) return start;
  }
  return text.size();
}

// Returns the end of an error message about a file that is not a text: a guess at its encoding, and a remedy.
std::string guess_encoding(std::string_view start, const std::string& name, bool is_nul) {
  using namespace std::string_view_literals;
  const auto zero = [&](size_t i) { return i < start.size() && start[i] == 0; };
  const char* encoding = nullptr;
  if (start.starts_with("\xff\xfe\0\0"sv) || start.starts_with("\0\0\xfe\xff"sv)) encoding = "UTF-32";
  else if (start.starts_with("\xff\xfe") || start.starts_with("\xfe\xff")) encoding = "UTF-16";
  else if (const std::string other = other_than_ids(start);
           !other.empty() && (name.ends_with(".bin") || name.ends_with(".npy") || name.ends_with(".npz")))
    return "; it looks like " + other;
  else if (name.ends_with(".bin"))
    return "; it looks like ids without a header, such as nanoGPT's train.bin, which ricci prepare --format u16 reads; if it holds "
           "anything else, leave it out";
  else if (!zero(0) && zero(1) && !zero(2) && zero(3)) encoding = "UTF-16LE";
  else if (zero(0) && !zero(1) && zero(2) && !zero(3)) encoding = "UTF-16BE";
  if (encoding) return format_message("; it looks like {}, and iconv -f {} -t UTF-8 converts it", {encoding, encoding});
  return is_nul ? "; it looks like UTF-16 or no text at all; encoding bytes reads any file"
                : "; encoding latin-1, or encoding bytes with tokenizer byte, reads any text";
}

}  // namespace

Utf8Character decode_utf8(std::string_view text, size_t position) {
  size_t end = position;
  const UChar32 code = decode(text, end);
  return code < 0 ? Utf8Character() : Utf8Character{static_cast<char32_t>(code), end - position};
}

Utf8Character decode_utf8_before(std::string_view text, size_t position) {
  const std::string_view last = text.substr(0, position).substr(position - std::min<size_t>(position, U8_MAX_LENGTH));
  const auto* const bytes = reinterpret_cast<const uint8_t*>(last.data());
  auto start = static_cast<int32_t>(last.size());
  UChar32 code = U_SENTINEL;
  if (start > 0) U8_PREV(bytes, 0, start, code);
  return code < 0 ? Utf8Character() : Utf8Character{static_cast<char32_t>(code), last.size() - static_cast<size_t>(start)};
}

void append_utf8(char32_t code, std::string& text) {
  char bytes[U8_MAX_LENGTH];
  int32_t length = 0;
  U8_APPEND_UNSAFE(bytes, length, static_cast<uint32_t>(code));
  text.append(bytes, static_cast<size_t>(length));
}

size_t complete_utf8_prefix(std::string_view text) {
  const std::string_view last = text.substr(text.size() - std::min<size_t>(text.size(), U8_MAX_LENGTH));
  const auto* const bytes = reinterpret_cast<const uint8_t*>(last.data());
  auto length = static_cast<int32_t>(last.size());
  U8_TRUNCATE_IF_INCOMPLETE(bytes, 0, length);
  return text.size() - last.size() + static_cast<size_t>(length);
}

void check_utf8(const std::string& who, std::string_view text, int64_t offset) {
  if (const size_t position = find_invalid(text); position < text.size())
    fail("{}: byte {} (value 0x{:02x}) is not valid UTF-8",
        {who, offset + static_cast<int64_t>(position), static_cast<unsigned char>(text[position])});
}

std::string replaced(std::string_view text, std::string_view part, std::string_view by) {
  std::string result;
  for (size_t found; (found = text.find(part)) != text.npos; text.remove_prefix(found + part.size()))
    result += std::string(text.substr(0, found)) + std::string(by);
  return result + std::string(text);
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string valid;
  for (size_t position = 0; position < text.size();) {
    const size_t start = position;
    valid += decode(text, position) < 0 ? "\xef\xbf\xbd" : text.substr(start, position - start);
  }
  return valid;
}

int64_t count_characters(std::string_view text) {
  int64_t count = 0;
  for (const char byte : text) count += !U8_IS_TRAIL(byte);
  return count;
}

std::string describe_character(char32_t code) {
  const std::string number = format_message("U+{:04X}", {static_cast<int64_t>(code)});
  if (code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029) return number;
  std::string text = "'";
  append_utf8(code, text);
  return text + "' (" + number + ")";
}

void TextDecoder::check(std::string_view bytes, const std::string& name) const {
  const size_t nul = std::min(bytes.find('\0'), bytes.size());
  const size_t invalid = encoding_ == Encoding::utf8 ? find_invalid(bytes.substr(0, nul)) : nul;
  if (invalid == bytes.size()) return;
  fail("{}: byte {} (value 0x{:02x}) is not {}{}",
      {name, offset_ + static_cast<int64_t>(invalid), static_cast<unsigned char>(bytes[invalid]), invalid == nul ? "text" : "valid UTF-8",
          guess_encoding(offset_ == 0 ? bytes : "", name, invalid == nul)});
}

void TextDecoder::append(std::string_view block, const std::string& name, std::string& text) {
  if (encoding_ == Encoding::bytes) return static_cast<void>(text += block);
  if (!held_.empty()) block = held_.append(block);
  const bool is_utf8 = encoding_ == Encoding::utf8;
  size_t complete = is_utf8 ? complete_utf8_prefix(block) : block.size();
  if (block.substr(0, complete).ends_with('\r')) --complete;
  std::string_view bytes = block.substr(0, complete);
  check(bytes, name);
  std::string decoded;
  if (!is_utf8) {
    for (const char byte : bytes) append_utf8(static_cast<unsigned char>(byte), decoded);  // in Latin-1 a code point equals its byte
    bytes = decoded;
  }
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (is_utf8 && offset_ == 0 && bytes.starts_with(kMark)) bytes.remove_prefix(kMark.size());
  for (size_t end; (end = bytes.find("\r\n")) != bytes.npos; bytes.remove_prefix(end + 1)) text += bytes.substr(0, end);
  text += bytes;
  offset_ += static_cast<int64_t>(complete);
  held_ = std::string(block.substr(complete));
}

void TextDecoder::finish(const std::string& name, std::string& text) {
  check(held_, name);
  text += std::exchange(held_, "");
  offset_ = 0;
}

}  // namespace ricci
