// The bytes of a text as UTF-8.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/choice.h"
#include "core/error.h"

namespace ricci {

// bytes: taken as they are, whatever they are.
enum class Encoding : uint8_t { utf8, latin1, bytes };
constexpr auto choices(Encoding) { return std::array{"utf-8", "latin-1", "bytes"}; }

// A text that is not UTF-8, as its encoding tells. A type of its own, so that a program can name its option for others.
class NotUtf8 : public Error {
 public:
  using Error::Error;
};

// One text, block by block.
class TextDecoder {
 public:
  explicit TextDecoder(Encoding encoding) : encoding_(encoding) {}
  // Appends the block as UTF-8; the bytes of a character that is not complete yet wait for the next block.
  // Throws NotUtf8, with the place of the byte in the text, which `name` is the name of.
  void append(std::string_view block, const std::string& name, std::string& text);
  // The end of the text. Throws NotUtf8 where it ends inside a character.
  void finish(const std::string& name) const;

 private:
  void append_utf8(std::string_view block, const std::string& name, std::string& text);
  Encoding encoding_;
  std::string held_;
  int64_t offset_ = 0;
};

}  // namespace ricci
