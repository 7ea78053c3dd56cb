// Ids that a test makes, as tokens.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "data/shards/tokens.h"
#include "data/text/utf8.h"
#include "data/tokenizers/char_tokenizer.h"
#include "tests/data/files.h"
#include "tests/data/shards/shard_files.h"

namespace test_data {

// They are the ids of a character text, with blocks instead of documents.
inline ricci::Tokens tokens_of(const std::vector<int64_t>& ids, int64_t vocab_size) {
  using namespace ricci;
  constexpr char32_t kFirst = 0x10000;
  std::string characters, text;
  for (int64_t id = 0; id < vocab_size; ++id) append_utf8(kFirst + static_cast<char32_t>(id), characters);
  for (const int64_t id : ids) append_utf8(kFirst + static_cast<char32_t>(id), text);
  const auto tokenizer = std::make_shared<CharTokenizer>(characters);
  const ScratchFolder folder;
  const std::string path = prepare(folder, "ids", {.files = TextSource(folder.write("ids.txt", text))}, tokenizer);
  return Tokens::open_cached(path, *tokenizer, "ids").in_blocks();
}

inline std::vector<int64_t> read_all(const ricci::Tokens& tokens) {
  std::vector<int64_t> ids(static_cast<size_t>(tokens.size()));
  tokens.read(0, ids);
  return ids;
}

// The elements of an i64 tensor; none if it is empty.
inline std::vector<int64_t> numbers_of(const ricci::Tensor& t) {
  if (!t) return {};
  return {t.data<int64_t>(), t.data<int64_t>() + t.size()};
}

inline std::vector<uint8_t> all_counts(const ricci::Tokens& tokens) {
  std::vector<uint8_t> counts(static_cast<size_t>(tokens.size()));
  tokens.read_counts(0, counts);
  return counts;
}

}  // namespace test_data
