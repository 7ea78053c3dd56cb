// One id per Unicode code point: the vocabulary is the sorted set of the characters of a text, id = rank in it.
// The same ids as nanoGPT's character-level corpora.
#pragma once
#include "data/formats/documents.h"
#include "data/text/utf8.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci {

// The characters of texts, and how many they are.
class CharacterSet {
 public:
  void add(std::string_view piece, int64_t offset);  // error: not UTF-8, at a byte counted from the offset
  std::string sorted() const;                        // each once
  int64_t count() const { return count_; }           // all of the texts, not each once
  void add(const Documents& documents);              // the same, named

 private:
  std::vector<uint8_t> found_ = std::vector<uint8_t>(kLargestCodePoint + 1);
  int64_t count_ = 0;
};

class CharTokenizer final : public Tokenizer {
 public:
  // The vocabulary as UTF-8, in the order of the ids; then the piece `end`, if it is not empty. No text has that one, since a text has only
  // characters. Errors: empty, a character twice, not UTF-8.
  explicit CharTokenizer(std::string_view characters, std::string end = "");
  // For the characters of texts, which are read once. Error: text that is not UTF-8.
  static CharTokenizer of_text(const Documents& documents) {
    CharacterSet characters;
    characters.add(documents);
    return CharTokenizer(characters.sorted());
  }

  std::string name() const override { return "char"; }
  int64_t vocab_size() const override { return std::ssize(characters_) + (end_.empty() ? 0 : 1); }
  Json model_json() const override;
  int64_t find(std::string_view piece) const override { return !end_.empty() && piece == end_ ? std::ssize(characters_) : -1; }

 protected:
  void append_model_ids(std::string_view piece, int64_t offset, std::vector<int64_t>& ids) const override;
  size_t model_prefix(std::string_view text) const override { return complete_utf8_prefix(text); }
  void append_text(int64_t id, DecodeState& state, std::string& text) const override;

 private:
  std::u32string characters_;  // by id
  std::string end_;
  std::vector<int32_t> id_of_;  // by code point, up to the largest of the vocabulary; -1 if not in it
};

}  // namespace ricci
