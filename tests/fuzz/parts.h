// Several texts in one input.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace fuzz {

// The texts between the zero bytes of an input; at least one.
inline std::vector<std::string> parts_of(std::string_view bytes) {
  std::vector<std::string> parts;
  for (size_t at = 0;;) {
    const size_t end = bytes.find('\0', at);
    parts.emplace_back(bytes.substr(at, end - at));
    if (end == bytes.npos) return parts;
    at = end + 1;
  }
}

}  // namespace fuzz
