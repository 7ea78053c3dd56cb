// The learning of byte pair encoding: the most frequent pair of neighbours becomes one piece, and so on.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/tokenizers/bpe/merges.h"

namespace ricci {

// A word as pieces, and how often it occurs.
struct PieceWord {
  std::vector<uint32_t> pieces;
  int64_t count;
};

// Adds to `pieces`, the texts of the pieces by their ids, what is learnt, and returns the merges in their order. Of pairs of equal
// count the one with the smaller left id is first, then the one with the smaller right id. Where two merges lead to one text, both have
// the same piece.
std::vector<Merges::Merge> learn_merges(std::vector<PieceWord> words, std::vector<std::string>& pieces, size_t vocab, int64_t min_count);

}  // namespace ricci
