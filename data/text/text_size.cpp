#include "data/text/text_size.h"

#include <string_view>

#include "data/text/text_stream.h"

namespace ricci {
namespace {

// The blanks of ASCII, whatever the locale.
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

TextSize size_of_text(const TextSource& text) {
  TextSize size;
  TextStream stream(text);
  bool in_word = false;
  for (std::string_view block; !(block = stream.next()).empty();) {
    size.bytes += static_cast<int64_t>(block.size());
    for (const char c : block) {
      const bool blank = is_blank(c);
      size.words += (c == '\n') + (!blank && !in_word);
      in_word = !blank;
    }
  }
  return size;
}

}  // namespace ricci
