#include "data/tokenizers/bpe/byte_letters.h"

#include <array>
#include <cstdint>

#include "data/tokenizers/utf8.h"

namespace ricci {
namespace {

constexpr bool prints(int byte) { return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae; }

constexpr std::array<char16_t, 256> kLetters = [] {
  std::array<char16_t, 256> letters{};
  char16_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) letters[static_cast<size_t>(byte)] = prints(byte) ? static_cast<char16_t>(byte) : next++;
  return letters;
}();

constexpr char32_t kPastLetters = 0x100 + 68;

constexpr std::array<int16_t, kPastLetters> kBytes = [] {
  std::array<int16_t, kPastLetters> bytes{};
  bytes.fill(-1);
  for (size_t byte = 0; byte < 256; ++byte) bytes[kLetters[byte]] = static_cast<int16_t>(byte);
  return bytes;
}();

}  // namespace

std::string bytes_to_letters(std::string_view bytes) {
  std::string letters;
  for (const char byte : bytes) append_utf8(kLetters[static_cast<unsigned char>(byte)], letters);
  return letters;
}

std::optional<std::string> letters_to_bytes(std::string_view letters) {
  std::string bytes;
  for (size_t at = 0; at < letters.size();) {
    const Utf8Character letter = decode_utf8(letters, at);
    if (letter.bytes == 0 || letter.code >= kPastLetters || kBytes[letter.code] < 0) return {};
    bytes += static_cast<char>(kBytes[letter.code]);
    at += letter.bytes;
  }
  return bytes;
}

}  // namespace ricci
