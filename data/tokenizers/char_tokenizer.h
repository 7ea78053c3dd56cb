// Tokenizers without training: an id means a byte or a Unicode character. Characters have the same ids as in nanoGPT's character-level
// corpora, so losses can be compared.
#pragma once
#include "data/formats/documents.h"
#include "data/text/utf8.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci {

class ByteTokenizer final : public Tokenizer {
 public:
  std::string name() const override { return "byte"; }
  int64_t vocab_size() const override { return 256; }
  Json model_json() const override { return {{"name", "byte"}}; }

 protected:
  void append_model_ids(std::string_view piece, int64_t, bool, std::vector<int64_t>& ids) const override {
    for (const char byte : piece) ids.push_back(static_cast<unsigned char>(byte));
  }
  size_t model_prefix(std::string_view text) const override { return text.size(); }
  void append_text(int64_t id, DecodeState&, std::string& text) const override { text += static_cast<char>(id); }
};

// Collects the characters of texts.
class CharacterSet {
 public:
  void add(std::string_view piece, int64_t offset);  // offset: position of the piece in its text. Error: the piece is not UTF-8
  void add(const Documents& documents);              // error: a text is not UTF-8
  std::string sorted() const;                        // the distinct characters
  int64_t count() const { return count_; }           // number of characters in all texts

 private:
  std::vector<uint8_t> found_ = std::vector<uint8_t>(kLargestCodePoint + 1);
  int64_t count_ = 0;
};

class CharTokenizer final : public Tokenizer {
 public:
  // The vocabulary consists of these characters, in id order, and the token `end` unless it is empty. Encoding never finds `end` in a text.
  // Errors: `characters` is empty, is not UTF-8, or has a duplicate.
  explicit CharTokenizer(std::string_view characters, std::string end = "");

  std::string name() const override { return "char"; }
  int64_t vocab_size() const override { return std::ssize(characters_) + (end_.empty() ? 0 : 1); }
  Json model_json() const override;
  int64_t find(std::string_view piece) const override { return !end_.empty() && piece == end_ ? std::ssize(characters_) : -1; }

 protected:
  void append_model_ids(std::string_view piece, int64_t offset, bool starts, std::vector<int64_t>& ids) const override;
  size_t model_prefix(std::string_view text) const override { return complete_utf8_prefix(text); }
  void append_text(int64_t id, DecodeState& state, std::string& text) const override;

 private:
  std::u32string characters_;  // by id
  std::string end_;
  std::vector<int32_t> id_of_;  // by code point, up to the largest of the vocabulary; -1 without a token
};

}  // namespace ricci
