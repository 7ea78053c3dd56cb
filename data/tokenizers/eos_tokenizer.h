// Another tokenizer, with a piece such as <eos> after every line or every document.
#pragma once
#include "core/choice.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci {

enum class Eos : uint8_t { none, line, document };
constexpr auto choices(Eos) { return std::array{"none", "line", "document"}; }

class EosTokenizer final : public Tokenizer {
 public:
  // line: the piece is in place of the end of each line, and is written as one. document: see append_end.
  // Errors: the vocabulary has no such piece; `after` is Eos::none.
  EosTokenizer(std::shared_ptr<const Tokenizer> tokenizer, Eos after, std::string piece);

  std::string name() const override { return tokenizer_->name(); }
  int64_t vocab_size() const override { return tokenizer_->vocab_size(); }
  std::string to_json() const override;
  void append_ids(std::string_view piece, int64_t offset, std::vector<int64_t>& ids) const override;
  size_t complete_prefix(std::string_view text) const override;
  void append_end(std::string_view last, std::vector<int64_t>& ids) const override;
  int64_t find(std::string_view piece) const override { return tokenizer_->find(piece); }
  Marks marks() const override { return tokenizer_->marks(); }

  const Tokenizer& without_eos() const { return *tokenizer_; }
  Eos after() const { return after_; }
  const std::string& piece() const { return piece_; }

 protected:
  void append_text(int64_t id, DecodeState& state, std::string& text) const override;

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  Eos after_;
  std::string piece_;
  int64_t id_;
};

// The tokenizer with the piece after each line or document; it is added to the vocabulary where it is not in it. Eos::none changes
// nothing. Error: its kind has no written pieces.
std::shared_ptr<const Tokenizer> with_eos(std::shared_ptr<const Tokenizer> tokenizer, Eos after, const std::string& piece);

}  // namespace ricci
