#include "data/tokenizers/vocabulary.h"

#include <algorithm>

#include "core/error.h"

namespace ricci {

Vocabulary::Vocabulary(const std::vector<std::string>& pieces) {
  pieces_.reserve(pieces.size());
  ids_.reserve(pieces.size());
  for (const std::string& piece : pieces) add(piece, size());
}

Vocabulary Vocabulary::of_pairs(const std::vector<std::pair<std::string, int64_t>>& pairs) {
  const int64_t most = std::min(kMaxPieces, 2 * static_cast<int64_t>(pairs.size()) + kSpareIds);
  Vocabulary vocabulary;
  vocabulary.ids_.reserve(pairs.size());
  for (const auto& [piece, id] : pairs) {
    if (id < 0 || id >= most)
      fail("vocabulary: the id {} of '{}', one of {} pieces, is not in 0 ... {}", {id, one_line(piece), pairs.size(), most - 1});
    vocabulary.add(piece, id);
  }
  return vocabulary;
}

int32_t Vocabulary::find(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? -1 : found->second;
}

void Vocabulary::add(std::string_view piece, int64_t id) {
  if (id >= kMaxPieces) fail("vocabulary: more than {} pieces", {kMaxPieces});
  if (const int32_t before = find(piece); before >= 0) fail("vocabulary: '{}' has the ids {} and {}", {one_line(piece), before, id});
  if (id >= size()) pieces_.resize(static_cast<size_t>(id) + 1, nullptr);
  const std::string*& place = pieces_[static_cast<size_t>(id)];
  if (place) fail("vocabulary: '{}' and '{}' have the same id {}", {one_line(*place), one_line(piece), id});
  place = &texts_.emplace_back(piece);
  ids_.emplace(*place, static_cast<int32_t>(id));
  longest_ = std::max(longest_, piece.size());
}

}  // namespace ricci
