// Tokenizers of words. WordTokenizer gives each word an id, as is usual for WikiText and Penn Treebank, and maps all other words to <unk>.
// BERT's WordPiece avoids most unknown words: it divides a word into the longest possible tokens, from left to right.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "data/tokenizers/piece_tokenizer.h"
#include "data/tokenizers/word_cache.h"

namespace ricci {

class WordTokenizer final : public PieceTokenizer {
 public:
  // Error: the vocabulary lacks `unknown`.
  WordTokenizer(Vocabulary vocabulary, std::vector<AddedToken> added, std::string unknown = "<unk>");

  std::string name() const override { return "word"; }
  const std::string& unknown() const override { return unknown_; }
  std::shared_ptr<PieceTokenizer> with_vocabulary(Vocabulary vocabulary, std::vector<AddedToken> added) const override;
  Json model_json() const override;

 protected:
  void append_plain(std::string_view text, int64_t offset, bool starts, std::vector<int64_t>& ids) const override;
  bool can_cut(std::string_view text, size_t position) const override;
  void append_text(int64_t id, DecodeState& state, std::string& text) const override;

 private:
  std::string unknown_;
  int32_t unknown_id_;
};

// Returns the next word from byte `position`, and moves the position past it; empty at the end. The text must be valid UTF-8.
std::string_view next_spaced_word(std::string_view text, size_t& position);

// BERT's normalization before tokenization, as in its tokenization.py and in Hugging Face's BertNormalizer.
struct BertText {
  bool clean = true;       // white space becomes a blank; control characters, U+0000 and U+FFFD are removed
  bool ideographs = true;  // every Chinese character is a word
  bool strip_accents = false;
  bool lowercase = false;

  // `offset` is the position of the text, for messages. Error: the text is not UTF-8.
  std::string normalize(std::string_view text, int64_t offset) const;
};

// Returns the next word of a normalized text from byte `position`, and moves the position past it; empty at the end. A word is a
// punctuation character, or everything up to the next punctuation or white space.
std::string_view next_bert_word(std::string_view text, size_t& position);

struct WordPieceOptions {
  BertText text = {};
  std::string unknown = "[UNK]";  // the token for a word that cannot be divided
  std::string prefix = "##";      // marks tokens that continue a word
  int64_t longest_word = 100;     // characters; longer words are unknown
  bool cleanup = true;            // decoding omits the blank before . ? ! , and the ends of contractions
  Json post_processor = nullptr;  // from the file, kept only for writing
};

class WordPieceTokenizer final : public PieceTokenizer {
 public:
  // Errors: the vocabulary lacks options.unknown; the prefix is empty; longest_word is out of range.
  WordPieceTokenizer(Vocabulary vocabulary, std::vector<AddedToken> added, WordPieceOptions options);

  std::string name() const override { return "wordpiece"; }
  const std::string& unknown() const override { return options_.unknown; }
  std::shared_ptr<PieceTokenizer> with_vocabulary(Vocabulary vocabulary, std::vector<AddedToken> added) const override;
  Json model_json() const override;

 protected:
  void append_plain(std::string_view text, int64_t offset, bool starts, std::vector<int64_t>& ids) const override;
  bool can_cut(std::string_view text, size_t position) const override;
  void append_text(int64_t id, DecodeState& state, std::string& text) const override;

 private:
  void append_word(std::string_view word, std::vector<int64_t>& ids) const;

  WordPieceOptions options_;
  int32_t unknown_;
  size_t longest_ = 0;  // bytes of the longest token
  WordCacheOwner cache_owner_;
};

// BERT's special tokens that are in the vocabulary, such as [CLS] and [MASK].
std::vector<AddedToken> find_bert_tokens(const Vocabulary& vocabulary);

}  // namespace ricci
