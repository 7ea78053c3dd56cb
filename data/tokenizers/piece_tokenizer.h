// The common part of tokenizers with a vocabulary (BPE, WordPiece, words). Added tokens such as <|endoftext|> are found in a text first.
// The text between them is normalized and encoded by the tokenizer's model. The model's vocabulary and the added tokens overlap: a token of
// the model can also be an added token, and the model does not know other added tokens although they have ids.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/json.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci {

inline constexpr int64_t kMaxPieces = int64_t{1} << 24;
inline constexpr int64_t kSpareIds = 1024;  // extra ids without a token that a file can have

class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;  // not copyable: ids_ points into texts_
  // The tokens get the ids 0, 1, 2, ... Error: a token is a duplicate.
  explicit Vocabulary(const std::vector<std::string>& pieces);
  // Reads a JSON object that maps tokens to ids. Ids can be missing. Errors: an id is not an integer, is negative, or exceeds twice the
  // number of tokens by kSpareIds; an id or token is a duplicate.
  static Vocabulary of_json(const Json& object);

  int64_t size() const { return static_cast<int64_t>(pieces_.size()); }  // the largest id + 1
  int64_t count() const { return static_cast<int64_t>(texts_.size()); }  // number of tokens; less than size() if ids are missing
  // The id of a token, or -1 if the vocabulary lacks it.
  int32_t find(std::string_view piece) const;
  bool has(int64_t id) const { return pieces_[static_cast<size_t>(id)] != nullptr; }
  // The token of an id in [0, size()), or an empty string.
  std::string_view piece(int64_t id) const { return has(id) ? std::string_view(*pieces_[static_cast<size_t>(id)]) : std::string_view(); }

  // Errors: of_json's.
  void add(std::string_view piece, int64_t id);

 private:
  std::deque<std::string> texts_;  // deque elements never move
  std::vector<const std::string*> pieces_;
  std::unordered_map<std::string_view, int32_t> ids_;
};

// A token such as [MASK] or <|endoftext|>, as defined by Hugging Face's tokenizers.
struct AddedToken {
  int64_t id = 0;
  std::string content;
  bool single_word = false;  // found only between characters that are not letters or digits
  bool lstrip = false;       // includes the white space before it
  bool rstrip = false;       // includes the white space after it
  bool normalized = false;   // found after the others, in the normalized text between them
  bool special = true;       // controls the model, and is not text
  bool bos = false;          // Marks::begin
  bool eos = false;          // one of Marks::ends
};

// Finds added tokens in a text by their first bytes.
class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens);  // none is empty

  bool empty() const { return tokens_.empty(); }
  // Calls use(begin, end, id) for each token of a text, including its white space, and with id -1 for the text between two tokens. The
  // leftmost token is found first and, among tokens that start at the same position, the longest. As in Hugging Face's tokenizers, the
  // white space that one token includes can contain a different token.
  void split(std::string_view text, const std::function<void(size_t begin, size_t end, int64_t id)>& use) const;
  // True if a cut between these two bytes could change the tokens of a text. White space before the cut is not considered.
  bool can_straddle(std::string_view two_bytes) const;

 private:
  const AddedToken* longest_at(std::string_view text, size_t position) const;

  std::vector<AddedToken> tokens_;  // the longest first
  std::array<bool, 256> starts_{};  // first bytes of tokens
};

class PieceTokenizer : public Tokenizer {
 public:
  PieceTokenizer(const PieceTokenizer&) = delete;
  int64_t vocab_size() const override { return vocabulary_.size(); }
  int64_t find(std::string_view piece) const override { return vocabulary_.find(piece); }
  const std::vector<AddedToken>& added_tokens() const { return added_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  // First id of the added tokens that the model does not know.
  int64_t model_size() const { return model_size_; }
  // The token for unknown text, or empty.
  virtual const std::string& unknown() const = 0;
  int64_t unknown_id() const final;

  // This model with a different vocabulary and added tokens. The caller keeps all tokens that the model needs. Error: the token of a byte
  // is missing.
  virtual std::shared_ptr<PieceTokenizer> with_vocabulary(Vocabulary vocabulary, std::vector<AddedToken> added) const = 0;
  // This tokenizer without added tokens, except the token for unknown text; other ids do not change. It encodes message texts, so a user
  // cannot insert a marker. Error: an added token is also the token of a byte.
  std::shared_ptr<const PieceTokenizer> without_added() const;

 protected:
  void append_model_ids(std::string_view piece, int64_t offset, bool starts, std::vector<int64_t>& ids) const final;
  size_t model_prefix(std::string_view text) const final;
  Marks model_marks() const override;

  // Normalizes a part of a text. `offset` is for messages; `starts` is true at the start of the text and after an added token.
  using NormalForm = std::function<std::string(std::string_view text, int64_t offset, bool starts)>;

  // Adds the tokens that the vocabulary lacks. An empty normal_form leaves texts unchanged. Errors: an added token has a different id in
  // the vocabulary, or its id belongs to a different token; an id is far beyond the vocabulary.
  PieceTokenizer(Vocabulary vocabulary, std::vector<AddedToken> added, NormalForm normal_form = {});

  // Appends the ids of a part of a text that contains no added tokens; `starts` is true at the start of the text.
  virtual void append_plain(std::string_view part, int64_t offset, bool starts, std::vector<int64_t>& ids) const = 0;
  // True if the text can be cut before byte `position`: the ids of both sides, joined, equal the ids of the full text.
  virtual bool can_cut(std::string_view text, size_t position) const = 0;

  // The id, or -1 if the model lacks the token.
  int32_t find_in_model(std::string_view piece) const;

 private:
  bool can_separate(std::string_view text, size_t position) const;

  Vocabulary vocabulary_;
  int64_t model_size_;
  std::vector<AddedToken> added_;
  NormalForm normal_form_;
  AddedTokens raw_, normalized_;  // found in the text, and in the normalized text
};

}  // namespace ricci
