// One id per Unicode code point: the vocabulary is the sorted set of the characters of a text, id = rank in it.
// The same ids as nanoGPT's character-level corpora.
#pragma once
#include "data/text/text_source.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci {

class CharTokenizer final : public Tokenizer {
 public:
  // The vocabulary as UTF-8, in the order of the ids. Errors: empty, a character twice, not UTF-8.
  explicit CharTokenizer(std::string_view characters);
  // The sorted set of the characters of a text, read once as a stream; once for all with a cache folder
  // (data/text/text_cache.h). Error: text that is not UTF-8.
  static CharTokenizer of_text(const TextSource& text, const std::string& cache_folder = "");

  std::string name() const override { return "char"; }
  int64_t vocab_size() const override { return static_cast<int64_t>(characters_.size()); }
  std::string to_json() const override;
  void append_ids(std::string_view piece, int64_t offset, std::vector<int64_t>& ids) const override;
  size_t complete_prefix(std::string_view text) const override;

 protected:
  void append_text(int64_t id, DecodeState& state, std::string& text) const override;

 private:
  std::u32string characters_;   // by id
  std::vector<int32_t> id_of_;  // by code point, up to the largest of the vocabulary; -1: not in it
};

}  // namespace ricci
