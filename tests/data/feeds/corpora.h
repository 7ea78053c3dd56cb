// Corpora for the tests of feeds, in folders of shards.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/feeds/feed.h"
#include "data/formats/formats.h"
#include "data/shards/tokens.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/kinds.h"
#include "tests/data/files.h"
#include "tests/data/shards/shard_files.h"

namespace test_data {

// Documents of 1 to `longest` tokens, each of letters and a line end.
inline std::string documents(int count, uint64_t longest, const std::string& letters) {
  Sequence sequence(3);
  std::string text;
  for (int i = 0; i < count; ++i) {
    for (uint64_t length = sequence.below(longest); length-- > 0;) text += letters[sequence.below(letters.size())];
    text += '\n';
  }
  return text;
}

inline ricci::Tokens corpus(const ScratchFolder& folder, const std::string& name = "small", const std::string& letters = "abcdef",
    int count = 400, uint64_t longest = 40) {
  return ricci::Tokens::open(prepared(folder, name, documents(count, longest, letters), 1500), ricci::ByteTokenizer());
}

// Lines of a format in a folder of shards.
inline ricci::Tokens records(const ScratchFolder& folder, const std::string& name, const std::string& lines,
    const ricci::DocumentOptions& options, const std::shared_ptr<const ricci::Tokenizer>& tokenizer, int64_t shard_tokens = 1 << 20) {
  const ricci::TextSource files(folder.write(name + ".lines", lines));
  return ricci::Tokens::open(prepare(folder, name, {.files = files, .options = options}, tokenizer, shard_tokens), *tokenizer);
}

// Document i is i + 1 letters under the label i % 5.
inline ricci::Tokens labelled(const ScratchFolder& folder, const std::string& name, int count) {
  std::string lines;
  for (int i = 0; i < count; ++i)
    lines += std::to_string(i % 5) + "\t" + std::string(static_cast<size_t>(i + 1), static_cast<char>('a' + i % 26)) + "\n";
  return records(folder, name, lines, {.format = ricci::format_of(ricci::kTsv), .label_field = "1", .classes = 5},
      std::make_shared<ricci::ByteTokenizer>(), 100);
}

// The bytes of answers are scored, those in prompts are not.
inline ricci::Tokens answers(
    const ScratchFolder& folder, const std::string& name, const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string lines;
  for (const auto& [prompt, answer] : pairs) lines += R"({"prompt": ")" + prompt + R"(", "answer": ")" + answer + "\"}\n";
  return records(folder, name, lines, {.format = ricci::format_of(ricci::kPairs)}, std::make_shared<ricci::ByteTokenizer>());
}

// a 0, b 1, | 2 at the start of every text.
inline std::shared_ptr<const ricci::Tokenizer> starting() {
  return ricci::tokenizer_from_json(
      R"({"added_tokens":[{"id":2,"content":"|"}],"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},)"
      R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"|"}},{"Sequence":{"id":"A"}}]},)"
      R"("model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":[]}})");
}

}  // namespace test_data
