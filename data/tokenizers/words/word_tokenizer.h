// One id per word, where words are what white space divides: the usual form of WikiText and Penn Treebank.
#pragma once
#include "data/tokenizers/piece_tokenizer.h"

namespace ricci {

class WordTokenizer final : public PieceTokenizer {
 public:
  // Error: no piece for what is unknown.
  WordTokenizer(Vocabulary vocabulary, std::vector<AddedToken> added, std::string unknown = "<unk>");

  std::string name() const override { return "word"; }
  const std::string& unknown() const override { return unknown_; }
  std::shared_ptr<PieceTokenizer> with_vocabulary(Vocabulary vocabulary, std::vector<AddedToken> added) const override;

 protected:
  void append_plain(std::string_view text, int64_t offset, std::vector<int64_t>& ids) const override;
  bool may_cut(std::string_view text, size_t position) const override;
  void append_text(int64_t id, DecodeState& state, std::string& text) const override;
  Json json_with(Json vocabulary) const override;

 private:
  std::string unknown_;
  int32_t unknown_id_;
};

// The next word after byte `byte`, which moves after it; empty if there is none. The text must be valid UTF-8.
std::string_view next_spaced_word(std::string_view text, size_t& position);

}  // namespace ricci
