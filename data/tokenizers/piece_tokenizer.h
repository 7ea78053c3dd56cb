// Tokenizers with a vocabulary of pieces (BPE, WordPiece, words), and what they share. Added tokens such as <|endoftext|> are found in a
// text first. The text between them is normalised and then encoded by the kind of the tokenizer, its model. The two vocabularies overlap: a
// model can have a piece that is also an added token, and does not know other added tokens although they have ids.
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
inline constexpr int64_t kSpareIds = 1024;  // ids without a piece that a file can have

class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;  // cannot be copied: ids_ points into texts_
  // The pieces get the ids 0, 1, 2, ... Error: a piece twice.
  explicit Vocabulary(const std::vector<std::string>& pieces);
  // From an object of pieces and their ids. Ids can be missing. Errors: an id that is not an integer, is negative, or exceeds twice the
  // number of pieces by kSpareIds; an id or a piece twice.
  static Vocabulary of_json(const Json& object);

  int64_t size() const { return static_cast<int64_t>(pieces_.size()); }  // the largest id + 1
  int64_t count() const { return static_cast<int64_t>(texts_.size()); }  // number of pieces; less than size() if ids are missing
  // The id of a piece, or -1 if it is not in the vocabulary.
  int32_t find(std::string_view piece) const;
  bool has(int64_t id) const { return pieces_[static_cast<size_t>(id)] != nullptr; }
  // The piece of an id in [0, size()), or an empty text.
  std::string_view piece(int64_t id) const { return has(id) ? std::string_view(*pieces_[static_cast<size_t>(id)]) : std::string_view(); }

  // Errors: of_json's.
  void add(std::string_view piece, int64_t id);

 private:
  std::deque<std::string> texts_;  // its elements never move
  std::vector<const std::string*> pieces_;
  std::unordered_map<std::string_view, int32_t> ids_;
};

// A token such as [MASK] or <|endoftext|>, as Hugging Face's tokenizers define them.
struct AddedToken {
  int64_t id = 0;
  std::string content;
  bool single_word = false;  // found only between characters that are not letters or digits
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool normalized = false;   // found after the others, in the normalised text between them
  bool special = true;       // controls the model, and is not text
  bool bos = false;          // Marks::begin
  bool eos = false;          // one of Marks::ends
};

// Finds added tokens in a text, by their first bytes because they are few.
class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens);  // without empty ones

  bool empty() const { return tokens_.empty(); }
  // Calls use(begin, end, id) for each token of a text, including the white space that it takes, and with id -1 for the text between two
  // tokens. The leftmost token wins, and if two start at the same place, the longer one. As in Hugging Face's tokenizers, the white
  // space that one token takes can contain another token.
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
  // Added tokens that the model does not know have the ids from here on.
  int64_t model_size() const { return model_size_; }
  // The piece for unknown text; empty if the model does not have one.
  virtual const std::string& unknown() const = 0;
  int64_t unknown_id() const final;

  // This model with another vocabulary and other added tokens. The caller keeps all pieces that the model needs. Error: the piece of a byte
  // is missing.
  virtual std::shared_ptr<PieceTokenizer> with_vocabulary(Vocabulary vocabulary, std::vector<AddedToken> added) const = 0;
  // This tokenizer without its added tokens, except the piece for unknown text; the other ids stay. It encodes the texts of messages,
  // because otherwise a user could write a marker. Error: an added token is also the piece of a byte.
  std::shared_ptr<const PieceTokenizer> without_added() const;

 protected:
  void append_model_ids(std::string_view piece, int64_t offset, bool starts, std::vector<int64_t>& ids) const final;
  size_t model_prefix(std::string_view text) const final;
  Marks model_marks() const override;

  // Normalises a text. The offset is for messages; `starts`: the text starts with it, or an added token is before it.
  using NormalForm = std::function<std::string(std::string_view text, int64_t offset, bool starts)>;

  // Added tokens that the vocabulary lacks are put into it. An empty normal_form leaves texts unchanged. Errors: another piece has the id
  // of a token; an id far beyond the vocabulary.
  PieceTokenizer(Vocabulary vocabulary, std::vector<AddedToken> added, NormalForm normal_form = {});

  // Appends the ids of a part of a text without added tokens; `starts`: the text starts with it.
  virtual void append_plain(std::string_view part, int64_t offset, bool starts, std::vector<int64_t>& ids) const = 0;
  // True if the text can be cut before byte `position`: both sides together encode to the ids of the whole.
  virtual bool can_cut(std::string_view text, size_t position) const = 0;

  // The id, or -1 if the model does not have the piece.
  int32_t find_in_model(std::string_view piece) const;

 private:
  bool can_separate(std::string_view text, size_t position) const;

  Vocabulary vocabulary_;
  int64_t model_size_;
  std::vector<AddedToken> added_;
  NormalForm normal_form_;
  AddedTokens raw_, normalized_;  // to find in the text, and in the normalised text
};

}  // namespace ricci
