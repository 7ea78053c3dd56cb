// Vocabularies made from texts. The same texts give the same vocabulary, whatever the number of threads.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/formats/documents.h"
#include "data/tokenizers/bpe/merges.h"
#include "data/tokenizers/bpe/split.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci {

struct TrainingOptions {
  int64_t vocab = 0;                                   // pieces, special ones included; of words: 0 for all
  int64_t min_count = 2;                               // a pair, or a word, that occurs less often becomes no piece
  std::vector<std::string> special = {};               // pieces with the first ids, found in texts as they are written
  const SplitPattern* pattern = &split_patterns()[0];  // for BPE
  bool lines = false;                                  // for BPE: the ends of lines are no text, as with <eos> after every line
};

// Byte-level BPE: the 256 bytes, then the most frequent pair of neighbouring pieces becomes a piece, and again; of equally
// frequent pairs the one of smaller ids.
std::shared_ptr<const Tokenizer> train_bpe(const Documents& documents, const TrainingOptions& options);

// A word as pieces, and how often it occurs.
struct PieceWord {
  std::vector<uint32_t> pieces;
  int64_t count;
};
// Learns the merges of byte pair encoding (pair_merging.cpp): adds the new texts to `pieces`, which are the texts of the pieces by their
// ids, and returns the merges in their order. If two merges lead to one text, both have the same piece.
std::vector<Merges::Merge> learn_merges(std::vector<PieceWord> words, std::vector<std::string>& pieces, size_t vocab, int64_t min_count);

// Words by their number, the most frequent first, <unk> before all of them; words of the same number by their bytes.
std::shared_ptr<const Tokenizer> train_words(const Documents& documents, const TrainingOptions& options);

// The tokenizer without the pieces that the texts do not need: what remains encodes these texts as before. Special pieces, single
// bytes of BPE, pieces that merges go through, and a piece after every line or document remain; ids are numbered anew in their order.
// Error: a tokenizer that is neither BPE nor WordPiece nor of words.
std::shared_ptr<const Tokenizer> restrict_to(const Documents& documents, const Tokenizer& tokenizer);

}  // namespace ricci
