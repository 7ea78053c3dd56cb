// Shared by the tokenizers with a vocabulary of pieces: tokens added to the vocabulary are found first, the text between them
// is normalised and encoded by the kind of the tokenizer, its model. A model may have pieces that are added tokens, too; others it does
// not know, although they have ids.
#pragma once
#include <functional>
#include <memory>
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
  const std::vector<AddedToken>& added_tokens() const { return added_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  // The ids from here on are of added tokens that the model does not know.
  int64_t model_size() const { return model_size_; }
  Json model_json() const final;
  // The piece for what is unknown; empty if the model has none.
  virtual const std::string& unknown() const = 0;

  // The same model with this vocabulary and these added tokens, for a caller who keeps the pieces that it cannot do without.
  // Error: the piece of a byte is no longer there.
  virtual std::shared_ptr<PieceTokenizer> with_vocabulary(Vocabulary vocabulary, std::vector<AddedToken> added) const = 0;
  // The same tokenizer as if its vocabulary had no added tokens, except the piece for what is unknown; the other ids stay. It encodes the
  // texts of messages: otherwise a user could write a marker. Error: an added token is the piece of a byte.
  std::shared_ptr<const PieceTokenizer> without_added() const;

 protected:
  void append_model_ids(std::string_view piece, int64_t offset, std::vector<int64_t>& ids) const final;
  size_t model_prefix(std::string_view text) const final;
  Marks model_marks() const override;
  Json hashed_model_json() const final;

  // The text in its normal form; the offset is for messages.
  using NormalForm = std::function<std::string(std::string_view text, int64_t offset)>;

  // Tokens that the vocabulary does not have yet are added to it. An empty function leaves the text as it is.
  // Errors: a token whose id another piece has, or that does not follow the vocabulary.
  PieceTokenizer(Vocabulary vocabulary, std::vector<AddedToken> added, NormalForm normal_form = {});

  // Appends the ids of text without added tokens.
  virtual void append_plain(std::string_view text, int64_t offset, std::vector<int64_t>& ids) const = 0;
  // True where the text may be cut before byte `position`, so that both sides encode to the ids of the whole.
  virtual bool may_cut(std::string_view text, size_t position) const = 0;
  // The JSON that has this as the vocabulary of the model.
  virtual Json json_with(Json vocabulary) const = 0;

  // The id of a piece of the model, or -1.
  int32_t find_in_model(std::string_view piece) const;

 private:
  void append_between(std::string_view text, int64_t offset, std::vector<int64_t>& ids) const;
  bool may_part(std::string_view text, size_t position) const;

  Vocabulary vocabulary_;
  int64_t model_size_;
  std::vector<AddedToken> added_;
  NormalForm normal_form_;
  AddedTokens raw_, normalized_;  // found in the text; in the normalised text
};

}  // namespace ricci
