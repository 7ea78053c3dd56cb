// Cuts a text in front of a character: one pass counts the characters, the second finds the byte.
#include "data/text/split.h"

#include <cmath>
#include <sstream>

#include "core/error.h"
#include "data/text/text_cache.h"
#include "data/tokenizers/utf8.h"

namespace ricci {

namespace {

struct TextSize {
  int64_t bytes = 0;
  int64_t characters = 0;
};

TextSize measure(const TextSource& text) {
  TextSize size;
  TextStream stream(text);
  for (std::string_view block = stream.next(); !block.empty(); block = stream.next()) {
    size.bytes += static_cast<int64_t>(block.size());
    size.characters += count_characters(block);
  }
  return size;
}

// Bytes in front of character number `character`, which exists.
int64_t bytes_before(const TextSource& text, int64_t character) {
  TextStream stream(text);
  int64_t bytes = 0;
  for (std::string_view block = stream.next(); !block.empty(); block = stream.next()) {
    const int64_t here = count_characters(block);
    if (here > character) {
      size_t at = 0;
      while (character >= 0) character -= count_characters(block.substr(at++, 1));
      return bytes + static_cast<int64_t>(at) - 1;
    }
    character -= here;
    bytes += static_cast<int64_t>(block.size());
  }
  return bytes;
}

// The byte to cut at, and the bytes of the text.
std::string find_cut(const TextSource& text, double train_fraction) {
  const TextSize size = measure(text);
  const auto train = static_cast<int64_t>(std::floor(static_cast<double>(size.characters) * train_fraction));
  if (train < 1 || train >= size.characters)
    fail("split: {} has {} characters, too few for a training fraction of {}", {text.name(), size.characters, train_fraction});
  const int64_t cut = bytes_before(text, train);
  return format_message("{} {}", {cut, size.bytes});
}

}  // namespace

Split split_by_characters(const TextSource& text, double train_fraction, const std::string& cache_folder) {
  if (!(train_fraction > 0 && train_fraction < 1))
    fail("split: the training fraction is {}, expected more than 0 and less than 1", {train_fraction});
  const std::string what = format_message("split-{}", {train_fraction});
  std::istringstream found(remembered(text, what, cache_folder, [&] { return find_cut(text, train_fraction); }));
  int64_t cut = 0, bytes = 0;
  found >> cut >> bytes;
  return {text.part("train", 0, cut), text.part("validation", cut, bytes)};
}

}  // namespace ricci
