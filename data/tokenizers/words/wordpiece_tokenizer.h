// WordPiece, as BERT uses it: a word is its longest beginning that is a piece, then the longest piece that goes on, and so forth.
#pragma once
#include "data/tokenizers/piece_tokenizer.h"
#include "data/tokenizers/word_cache.h"
#include "data/tokenizers/words/bert_text.h"

namespace ricci {

struct WordPieceOptions {
  BertText text = {};
  std::string unknown = "[UNK]";    // the piece for a word that no pieces make up
  std::string prefix = "##";        // of pieces that go on with a word
  int64_t longest_word = 100;       // characters; a longer one is unknown
  bool cleanup = true;              // decoding writes no blank before . ? ! , and the ends of contractions
  std::string post_processor = {};  // JSON of a file, kept for those who read the file again; not used here
};

class WordPieceTokenizer final : public PieceTokenizer {
 public:
  // Errors: no piece for what is unknown, no prefix, a longest word that is none or too long.
  WordPieceTokenizer(Vocabulary vocabulary, std::vector<AddedToken> added, WordPieceOptions options);

  std::string name() const override { return "wordpiece"; }
  std::string to_json() const override;
  const WordPieceOptions& options() const { return options_; }

 protected:
  void append_plain(std::string_view text, int64_t offset, std::vector<int64_t>& ids) const override;
  bool may_cut(std::string_view text, size_t at) const override;
  size_t complete_prefix_by_splitting(std::string_view text) const override;
  void append_text(int64_t id, DecodeState& state, std::string& text) const override;

 private:
  void append_word(std::string_view word, std::vector<int64_t>& ids) const;

  WordPieceOptions options_;
  int32_t unknown_;
  std::unordered_map<std::string_view, int32_t> going_on_;  // pieces with the prefix, by what follows it
  std::vector<size_t> lengths_, lengths_going_on_;          // bytes that such pieces have, the largest first
  mutable WordCaches caches_;
};

// The tokens of BERT's vocabularies that are recognised in a text, those of them that the vocabulary has.
std::vector<AddedToken> bert_special_tokens(const Vocabulary& vocabulary);

}  // namespace ricci
