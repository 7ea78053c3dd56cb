#include "data/tokenizers/encode.h"

#include "core/cpu/parallel.h"
#include "core/error.h"

namespace ricci {
namespace {

constexpr size_t kPart = 32 << 10;                      // bytes that one thread encodes at a time
constexpr int64_t kFewParts = 1024, kGrainOfMany = 16;  // many parts are short ones

struct Part {
  std::string_view text;
  int64_t first_byte;
  size_t passage;
  bool is_first, ends;  // of the passage; the document
};

// The passage in parts of about kPart bytes.
void append_parts(const Tokenizer& tokenizer, const Passage& passage, size_t number, std::vector<Part>& parts) {
  const std::string_view text = passage.text;
  const auto append = [&](size_t begin, size_t bytes, bool ends) {
    parts.push_back({text.substr(begin, bytes), passage.first_byte + static_cast<int64_t>(begin), number, begin == 0, ends});
  };
  size_t begin = 0, wanted = kPart;
  while (text.size() - begin > wanted) {
    const size_t complete = tokenizer.complete_prefix(text.substr(begin, wanted));
    if (complete > 0) append(begin, complete, false);
    begin += complete;
    wanted = complete > 0 ? kPart : 2 * wanted;  // a unit of the text may be longer than a part
  }
  append(begin, text.size() - begin, passage.ends);
}

void append_ids(const Tokenizer& tokenizer, const Part& part, std::string_view place, std::vector<int64_t>& ids) {
  ids.reserve(part.text.size() / 3);
  try {
    tokenizer.append_ids(part.text, part.first_byte, ids);
    if (part.ends) tokenizer.append_end(part.text, ids);
  } catch (const Error& error) {
    if (place.empty()) throw;
    fail("{}: {}", {std::string(place), error.what()});
  }
}

}  // namespace

std::vector<EncodedPart> encode(const Tokenizer& tokenizer, std::span<const Passage> passages) {
  std::vector<Part> parts;
  for (size_t i = 0; i < passages.size(); ++i) append_parts(tokenizer, passages[i], i, parts);
  std::vector<EncodedPart> encoded;
  for (const Part& part : parts) encoded.push_back({part.passage, part.is_first, {}});
  const auto count = static_cast<int64_t>(parts.size());
  parallel_for_first_error(count, count > kFewParts ? kGrainOfMany : 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      append_ids(tokenizer, parts[i], passages[parts[i].passage].place, encoded[i].ids);
  });
  return encoded;
}

}  // namespace ricci
