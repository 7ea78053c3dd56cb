#include "data/tokenizers/parallel_encode.h"

#include "core/cpu/first_error.h"
#include "core/error.h"

namespace ricci {
namespace {

constexpr size_t kPart = 32 << 10;  // bytes that one thread encodes at a time

struct Part {
  std::string_view text;
  int64_t offset;
  std::vector<int64_t> ids;
};

// The text in parts of about kPart bytes that encode on their own.
std::vector<Part> parts_of(const Tokenizer& tokenizer, std::string_view text, int64_t offset) {
  std::vector<Part> parts;
  size_t begin = 0, wanted = kPart;
  while (text.size() - begin > wanted) {
    const size_t complete = tokenizer.complete_prefix(text.substr(begin, wanted));
    if (complete > 0) parts.push_back({text.substr(begin, complete), offset + static_cast<int64_t>(begin), {}});
    begin += complete;
    wanted = complete > 0 ? kPart : 2 * wanted;  // a unit of the text may be longer than a part
  }
  parts.push_back({text.substr(begin), offset + static_cast<int64_t>(begin), {}});
  return parts;
}

std::vector<Part> encode(const Tokenizer& tokenizer, std::string_view text, int64_t offset) {
  std::vector<Part> parts = parts_of(tokenizer, text, offset);
  parallel_for_first_error(static_cast<int64_t>(parts.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      parts[i].ids.reserve(parts[i].text.size() / 3);
      tokenizer.append_ids(parts[i].text, parts[i].offset, parts[i].ids);
    }
  });
  return parts;
}

}  // namespace

void append_ids_in_parallel(const Tokenizer& tokenizer, std::string_view text, int64_t offset, std::vector<int64_t>& ids) {
  if (text.size() <= kPart) return tokenizer.append_ids(text, offset, ids);
  const std::vector<Part> parts = encode(tokenizer, text, offset);
  size_t count = ids.size();
  for (const Part& part : parts) count += part.ids.size();
  ids.reserve(count);
  for (const Part& part : parts) ids.insert(ids.end(), part.ids.begin(), part.ids.end());
}

void for_each_ids(
    const TextSource& text, const Tokenizer& tokenizer, const std::function<void(std::span<const int64_t> ids, int64_t bytes)>& use) {
  const auto encode_piece = [&](std::string_view piece, int64_t offset) {
    try {
      return encode(tokenizer, piece, offset);
    } catch (const Error& error) {
      fail("{}: {}", {text.name(), error.what()});
    }
  };
  std::string last;  // the last byte
  for_each_piece(
      text, [&](std::string_view piece) { return tokenizer.complete_prefix(piece); },
      [&](std::string_view piece, int64_t offset) {
        for (const Part& part : encode_piece(piece, offset)) use(part.ids, static_cast<int64_t>(part.text.size()));
        if (!piece.empty()) last = piece.back();
      });
  std::vector<int64_t> end;
  tokenizer.append_end(last, end);
  use(end, 0);
}

}  // namespace ricci
