#include "data/text/encoding.h"

#include <cstring>

#include "core/error.h"
#include "data/tokenizers/utf8.h"

namespace ricci {
namespace {

[[noreturn]] void reject(const std::string& name, int64_t offset, char byte) {
  throw NotUtf8(format_message("{}: byte {} (value 0x{:02x}) is not valid UTF-8", {name, offset, static_cast<unsigned char>(byte)}));
}

// Bytes at the start of the text that are ASCII, looked at 8 at a time.
size_t ascii_prefix(std::string_view text, size_t at) {
  for (uint64_t word; at + sizeof word <= text.size(); at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    if (word & 0x8080808080808080u) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

}  // namespace

void TextDecoder::append(std::string_view block, const std::string& name, std::string& text) {
  if (encoding_ == Encoding::utf8) return append_utf8(block, name, text);
  if (encoding_ == Encoding::bytes) return static_cast<void>(text += block);
  for (const char byte : block) ricci::append_utf8(static_cast<unsigned char>(byte), text);  // the code points of Latin-1 are its bytes
}

void TextDecoder::append_utf8(std::string_view block, const std::string& name, std::string& text) {
  if (!held_.empty()) block = held_.append(block);
  const size_t complete = complete_utf8_prefix(block);
  for (size_t at = ascii_prefix(block, 0); at < complete; at = ascii_prefix(block, at)) {
    const size_t bytes = decode_utf8(block, at).bytes;
    if (bytes == 0) reject(name, offset_ + static_cast<int64_t>(at), block[at]);
    at += bytes;
  }
  text += block.substr(0, complete);
  offset_ += static_cast<int64_t>(complete);
  held_ = std::string(block.substr(complete));
}

void TextDecoder::finish(const std::string& name) const {
  if (!held_.empty()) reject(name, offset_, held_[0]);
}

}  // namespace ricci
