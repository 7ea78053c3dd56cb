// WordPiece, as BERT uses it: a word is its longest beginning that is a piece, then the longest piece that goes on, and so forth.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "data/tokenizers/piece_tokenizer.h"
#include "data/tokenizers/word_cache.h"

namespace ricci {

// BERT does this to a text before it looks for pieces, as in its tokenization.py and in Hugging Face's BertNormalizer and
// BertPreTokenizer.
struct BertText {
  bool clean = true;       // white space becomes a blank; control characters, U+0000 and U+FFFD go
  bool ideographs = true;  // a Chinese character is a word of its own
  bool strip_accents = false;
  bool lowercase = false;

  // The text in its normal form. Error: not UTF-8, with the byte's place where the text starts at `offset`.
  std::string normalize(std::string_view text, int64_t offset) const;
};

// The next word of a text in normal form after byte `position`, which moves after it: a punctuation character, or all up to the next one or
// white space. It is empty if there is none.
std::string_view next_bert_word(std::string_view text, size_t& position);

struct WordPieceOptions {
  BertText text = {};
  std::string unknown = "[UNK]";  // the piece for a word that no pieces make up
  std::string prefix = "##";      // pieces that go on with a word have it
  int64_t longest_word = 100;     // characters; a longer one is unknown
  bool cleanup = true;            // decoding writes no blank before . ? ! , and the ends of contractions
  Json post_processor = nullptr;  // kept from a file for programs that read the file again; not used here
};

class WordPieceTokenizer final : public PieceTokenizer {
 public:
  // Errors: no piece for what is unknown, no prefix, a longest word that is none or too long.
  WordPieceTokenizer(Vocabulary vocabulary, std::vector<AddedToken> added, WordPieceOptions options);

  std::string name() const override { return "wordpiece"; }
  const std::string& unknown() const override { return options_.unknown; }
  std::shared_ptr<PieceTokenizer> with_vocabulary(Vocabulary vocabulary, std::vector<AddedToken> added) const override;

 protected:
  void append_plain(std::string_view text, int64_t offset, std::vector<int64_t>& ids) const override;
  bool may_cut(std::string_view text, size_t position) const override;
  void append_text(int64_t id, DecodeState& state, std::string& text) const override;
  Json json_with(Json vocabulary) const override;

 private:
  void append_word(std::string_view word, std::vector<int64_t>& ids) const;

  WordPieceOptions options_;
  int32_t unknown_;
  size_t longest_ = 0;  // bytes of a piece
  WordCacheOwner cache_owner_;
};

// The tokens that BERT recognises in a text, as far as the vocabulary has them.
std::vector<AddedToken> bert_special_tokens(const Vocabulary& vocabulary);

}  // namespace ricci
