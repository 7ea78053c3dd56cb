// Shared by the tokenizers with a vocabulary of pieces: tokens added to the vocabulary are found first, the text between them
// is normalised and encoded by the kind of the tokenizer.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "data/tokenizers/tokenizer.h"
#include "data/tokenizers/vocabulary.h"

namespace ricci {

class PieceTokenizer : public Tokenizer {
 public:
  PieceTokenizer(const PieceTokenizer&) = delete;
  int64_t vocab_size() const override { return vocabulary_.size(); }
  int64_t find(std::string_view piece) const override { return vocabulary_.find(piece); }
  Marks marks() const override;
  const std::vector<AddedToken>& added_tokens() const { return added_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }

  void append_ids(std::string_view piece, int64_t offset, std::vector<int64_t>& ids) const override;
  size_t complete_prefix(std::string_view text) const override;
  // Appends the ids of a text in which no added token is looked for, whatever it holds.
  void append_plain_text(std::string_view text, std::vector<int64_t>& ids) const;

 protected:
  // The text in its normal form; the offset is for messages.
  using NormalForm = std::function<std::string(std::string_view text, int64_t offset)>;

  // Tokens that the vocabulary does not have yet are added to it. An empty function leaves the text as it is.
  // Errors: a token whose id another piece has, or that does not follow the vocabulary.
  PieceTokenizer(Vocabulary vocabulary, std::vector<AddedToken> added, NormalForm normal_form = {});

  // Appends the ids of text without added tokens.
  virtual void append_plain(std::string_view text, int64_t offset, std::vector<int64_t>& ids) const = 0;
  // True where the text may be cut before byte `position`, so that both sides encode to the ids of the whole.
  virtual bool may_cut(std::string_view text, size_t position) const = 0;
  // complete_prefix of a text in which may_cut finds no place; may be 0. It is asked only where no added token is looked for in the
  // normal form.
  virtual size_t complete_prefix_by_splitting(std::string_view) const { return 0; }

  // Appends the text of a token that was added. Returns false if the id is another's.
  bool append_added(int64_t id, std::string& text) const;

 private:
  void append_between(std::string_view text, int64_t offset, std::vector<int64_t>& ids) const;
  struct Range {
    size_t begin, end;
  };
  // The text after the last added token.
  Range last_plain(std::string_view text) const;

  Vocabulary vocabulary_;
  std::vector<AddedToken> added_;
  NormalForm normal_form_;
  AddedTokens raw_, normalized_;  // found in the text; in the normalised text
  bool divisible_ = true;         // texts may be cut
  std::vector<const AddedToken*> added_of_id_;
};

}  // namespace ricci
