// Tokenizers of words. WordTokenizer gives each word an id, as in the usual form of WikiText and Penn Treebank, so every other word is lost
// as <unk>. BERT's WordPiece avoids this: it divides a word into the longest pieces, from left to right.
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

// The next word from byte `position` on, and moves the position past it; empty at the end. The text must be valid UTF-8.
std::string_view next_spaced_word(std::string_view text, size_t& position);

// BERT normalises a text like this before it looks for pieces, as in its tokenization.py and in Hugging Face's BertNormalizer.
struct BertText {
  bool clean = true;       // white space becomes a blank; control characters, U+0000 and U+FFFD are removed
  bool ideographs = true;  // every Chinese character is a word
  bool strip_accents = false;
  bool lowercase = false;

  // offset: of the text, for the message. Error: not UTF-8.
  std::string normalize(std::string_view text, int64_t offset) const;
};

// The next word of a normalised text from byte `position` on, and moves the position past it: a punctuation character, or everything up to
// the next one or to white space. It is empty at the end.
std::string_view next_bert_word(std::string_view text, size_t& position);

struct WordPieceOptions {
  BertText text = {};
  std::string unknown = "[UNK]";  // the piece for a word that cannot be divided into pieces
  std::string prefix = "##";      // marks pieces that continue a word
  int64_t longest_word = 100;     // characters; longer words are unknown
  bool cleanup = true;            // decoding omits the blank before . ? ! , and the ends of contractions
  Json post_processor = nullptr;  // from the file, only to be written again
};

class WordPieceTokenizer final : public PieceTokenizer {
 public:
  // Errors: the vocabulary lacks options.unknown; no prefix; longest_word is out of range.
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
  size_t longest_ = 0;  // bytes of a piece
  WordCacheOwner cache_owner_;
};

// [CLS], [MASK] and the other special tokens of BERT that the vocabulary has.
std::vector<AddedToken> find_bert_tokens(const Vocabulary& vocabulary);

}  // namespace ricci
