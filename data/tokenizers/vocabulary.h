// The pieces of a subword or word tokenizer and their ids.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ricci {

inline constexpr int64_t kMaxPieces = int64_t{1} << 24;
inline constexpr int64_t kSpareIds = 1024;  // a file may leave out so many ids

class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;  // not to be copied: ids_ points into texts_
  // Ids 0, 1, 2, ... in this order. Error: a piece twice, with both ids.
  explicit Vocabulary(const std::vector<std::string>& pieces);
  // As a file lists them. Some ids may be missing. Errors: an id or a piece twice, a negative id, or so large a one that
  // more than half of the ids and kSpareIds would have no piece.
  static Vocabulary of_pairs(const std::vector<std::pair<std::string, int64_t>>& pairs);

  int64_t size() const { return static_cast<int64_t>(pieces_.size()); }  // the largest id and one
  // The id of a piece; -1: not in the vocabulary.
  int32_t find(std::string_view piece) const;
  bool has(int64_t id) const { return pieces_[static_cast<size_t>(id)] != nullptr; }
  // The piece of an id inside [0, size()); empty where the id has none.
  std::string_view piece(int64_t id) const { return has(id) ? std::string_view(*pieces_[static_cast<size_t>(id)]) : std::string_view(); }
  size_t longest() const { return longest_; }  // bytes

  // Gives the piece the id. Errors: those of of_pairs.
  void add(std::string_view piece, int64_t id);

 private:
  std::deque<std::string> texts_;  // its elements never move
  std::vector<const std::string*> pieces_;
  std::unordered_map<std::string_view, int32_t> ids_;
  size_t longest_ = 0;
};

}  // namespace ricci
