// How deeply lists and objects are nested in a text of JSON, to be asked before it is parsed: code that walks through a
// parsed value calls itself for every level, and the stack ends at some. Brackets inside strings do not count.
#pragma once
#include <algorithm>
#include <string_view>

namespace ricci {

inline int json_depth(std::string_view text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') ++i;
    if (c == '"') in_string = !in_string;
    if (in_string) continue;
    if (c == '{' || c == '[') deepest = std::max(deepest, ++depth);
    if (c == '}' || c == ']') --depth;
  }
  return deepest;
}

}  // namespace ricci
