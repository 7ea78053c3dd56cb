// The pieces of a subword or word tokenizer and their ids, and the tokens that are looked for in a text before anything else.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/json.h"

namespace ricci {

inline constexpr int64_t kMaxPieces = int64_t{1} << 24;
inline constexpr int64_t kSpareIds = 1024;  // ids that a file may leave out

class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;  // not to be copied: ids_ points into texts_
  // Ids 0, 1, 2, ... in this order. Error: a piece twice, with both ids.
  explicit Vocabulary(const std::vector<std::string>& pieces);
  // An object of pieces and their ids. Some ids may be missing. Errors: an id that is no integer, negative, or so large that more than half
  // of the ids and kSpareIds would have no piece; an id or a piece twice.
  static Vocabulary of_json(const Json& object);

  int64_t size() const { return static_cast<int64_t>(pieces_.size()); }  // the largest id and one
  int64_t count() const { return static_cast<int64_t>(texts_.size()); }  // less, if ids are missing
  // The id of a piece, or -1 if it is not in the vocabulary.
  int32_t find(std::string_view piece) const;
  bool has(int64_t id) const { return pieces_[static_cast<size_t>(id)] != nullptr; }
  // The piece of an id inside [0, size()); empty where the id has none.
  std::string_view piece(int64_t id) const { return has(id) ? std::string_view(*pieces_[static_cast<size_t>(id)]) : std::string_view(); }

  // Gives the piece the id. Errors: of_json's.
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
  bool single_word = false;  // only where no letter or digit is beside it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool normalized = false;   // looked for after the others, in the normalised text between them
  bool special = true;       // controls the model and is no text
  bool bos = false;          // Marks::begin
  bool eos = false;          // one of Marks::ends
};

// The tokens with one value of `normalized`, to be found in a text by their first byte: they are few.
class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens);  // none is empty

  bool empty() const { return tokens_.empty(); }
  // Calls use(begin, end, id) for each token of a text, with the white space that it takes, and with the id -1 for the text between them.
  // The leftmost token is first, and the longest if several start at one place. As in Hugging Face's tokenizers, white space that one token
  // takes may hold another one, and the text between starts again after that.
  void split(std::string_view text, const std::function<void(size_t begin, size_t end, int64_t id)>& use) const;
  // True if the tokens of a text could depend on its not being cut between these two bytes. White space before the cut is not considered.
  bool may_straddle(std::string_view two_bytes) const;

 private:
  const AddedToken* longest_at(std::string_view text, size_t position) const;

  std::vector<AddedToken> tokens_;  // by length, the longest first
  std::array<bool, 256> starts_{};  // first bytes of tokens
};

}  // namespace ricci
