#include "apps/lab/drawing/png.h"

#include <zlib.h>

#include <string_view>

#include "core/error.h"

namespace ricci::apps {
namespace {

std::string big_endian(uint64_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

std::string chunk(const std::string& kind, const std::string& content) {
  const std::string checked = kind + content;
  return big_endian(content.size()) + checked +
         big_endian(::crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size())));
}

std::string compressed(const std::string& bytes) {
  uLongf size = ::compressBound(bytes.size());
  std::string result(size, '\0');
  if (::compress(reinterpret_cast<Bytef*>(result.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()) != Z_OK)
    fail("png: no memory for {} bytes", {bytes.size()});
  result.resize(size);
  return result;
}

std::string base64(std::string_view bytes) {
  constexpr const char* kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t j = 0; j < 3; ++j) three = three << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j) text += i + j <= bytes.size() ? kLetters[three >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

}  // namespace

std::string to_png(int64_t width, const std::vector<Colour>& pixels) {
  if (width < 1 || pixels.empty() || static_cast<int64_t>(pixels.size()) % width)
    fail("png: {} pixels in rows of {}", {pixels.size(), width});
  std::string rows;
  for (size_t i = 0; i < pixels.size(); ++i) {
    if (static_cast<int64_t>(i) % width == 0) rows += '\0';  // no filter
    rows.append(reinterpret_cast<const char*>(pixels[i].data()), 3);
  }
  const std::string header = big_endian(static_cast<uint64_t>(width)) + big_endian(pixels.size() / static_cast<uint64_t>(width)) +
                             std::string("\x08\x02\0\0\0", 5);  // 8 bits a colour, red green blue
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("IDAT", compressed(rows)) + chunk("IEND", "");
}

std::string to_data_address(const std::string& png) { return "data:image/png;base64," + base64(png); }

}  // namespace ricci::apps
