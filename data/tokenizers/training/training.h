// Trains vocabularies on texts. The result must not depend on the number of threads, because a tokenizer is a part of a run that others
// repeat.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/formats/documents.h"
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/bpe/split.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci {

struct TrainingOptions {
  int64_t vocab = 0;                                   // pieces, including special ones; words: 0 means all
  int64_t min_count = 2;                               // a pair or word that occurs less often does not become a piece
  std::vector<std::string> special = {};               // pieces with the first ids, found in texts as they are written
  const SplitPattern* pattern = &split_patterns()[0];  // for BPE
  bool lines = false;                                  // for BPE: line ends are not text, because <eos> replaces them
};

// Byte-level BPE: starts with the 256 bytes; then, again and again, the most frequent pair of neighbouring pieces becomes a piece. Of
// equally frequent pairs the one with smaller ids is first.
std::shared_ptr<const Tokenizer> train_bpe(const std::vector<Documents>& sources, const TrainingOptions& options);

// A word as pieces, and the number of its occurrences.
struct PieceWord {
  std::vector<uint32_t> pieces;
  int64_t count;
};
// Learns the merges of byte pair encoding (pair_merging.cpp). Returns them in order, and appends their pieces to `pieces`, which has the
// text of each piece by its id. Two merges with the same text have the same piece.
std::vector<Merges::Merge> learn_merges(std::vector<PieceWord> words, std::vector<std::string>& pieces, size_t vocab, int64_t min_count);

// The most frequent words, after <unk>; equally frequent words in the order of their bytes.
std::shared_ptr<const Tokenizer> train_words(const std::vector<Documents>& sources, const TrainingOptions& options);

// The tokenizer without the pieces that these texts do not need; it encodes them as before. Special pieces, the bytes of BPE, pieces that
// are parts of merges, and the piece after every line or document stay; all get new ids in the old order. Error: the tokenizer is not BPE,
// WordPiece or of words.
std::shared_ptr<const Tokenizer> restrict_to(const Documents& documents, const Tokenizer& tokenizer);

}  // namespace ricci
