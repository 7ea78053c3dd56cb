// Another tokenizer, with a piece such as <eos> after every line or every document. Without one after documents a model cannot learn where
// they end, and would never stop writing.
#pragma once
#include "core/choice.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci {

enum class Eos : uint8_t { none, line, document };
constexpr auto choices(Eos) { return std::array{"none", "line", "document"}; }

inline constexpr const char* kEos = "<eos>";  // the piece, unless another one is asked for

class EosTokenizer final : public Tokenizer {
 public:
  // line: the piece is in place of the end of each line, and is written as one. document: see append_end.
  // Errors: the vocabulary has no such piece; `after` is Eos::none.
  EosTokenizer(std::shared_ptr<const Tokenizer> tokenizer, Eos after, std::string piece);

  std::string name() const override { return tokenizer_->name(); }
  int64_t vocab_size() const override { return tokenizer_->vocab_size(); }
  std::string to_json() const override { return json_with(tokenizer_->to_json()); }
  std::string hashed_json() const override { return json_with(tokenizer_->hashed_json()); }
  void append_ids(std::string_view piece, int64_t offset, std::vector<int64_t>& ids) const override;
  size_t complete_prefix(std::string_view text) const override;
  void append_end(std::string_view last, std::vector<int64_t>& ids) const override;
  int64_t find(std::string_view piece) const override { return tokenizer_->find(piece); }
  Marks marks() const override;  // the piece after documents is the first of Marks::ends; one after lines ends no text

  const Tokenizer& without_eos() const { return *tokenizer_; }
  Eos after() const { return after_; }
  const std::string& piece() const { return piece_; }

 protected:
  void append_text(int64_t id, DecodeState& state, std::string& text) const override;

 private:
  std::string json_with(const std::string& tokenizer) const;
  std::shared_ptr<const Tokenizer> tokenizer_;
  Eos after_;
  std::string piece_;
  int64_t id_;
};

// Where the tokenizer puts a piece; none for every other tokenizer.
Eos eos_of(const Tokenizer& tokenizer);

// The text of the token that ends a text: the first of Marks::ends, else <|endoftext|> or another name of it in the vocabulary. It is
// empty if there is none.
std::string end_of_text(const Tokenizer& tokenizer);

// The tokenizer with the piece after each line or document; it is added to the vocabulary if it is not in it. An empty piece is the
// tokenizer's own end_of_text after documents, else <eos>. Eos::none changes nothing. Error: its kind has no place for such a piece.
std::shared_ptr<const Tokenizer> with_eos(std::shared_ptr<const Tokenizer> tokenizer, Eos after, std::string piece = "");

// For documents that follow each other, if no piece was chosen: the tokenizer's own end_of_text after each. A tokenizer that has none, or
// has its piece already, stays as it is.
std::shared_ptr<const Tokenizer> with_own_eos(std::shared_ptr<const Tokenizer> tokenizer);

// The tokenizer itself without a piece after documents. Other programs put it there by the ids in a config.
const Tokenizer& without_document_ends(const Tokenizer& tokenizer);

}  // namespace ricci
