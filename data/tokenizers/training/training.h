// Trains vocabularies on texts. The result never depends on the number of threads.
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
  int64_t vocab = 0;                                   // vocabulary size with special tokens; 0 means all words
  int64_t min_count = 2;                               // rarer pairs and words do not become tokens
  std::vector<std::string> special = {};               // tokens with the first ids, found in texts as written
  const SplitPattern* pattern = &split_patterns()[0];  // for BPE
  bool lines = false;                                  // for BPE: line ends are replaced by <eos>
};

// Trains byte-level BPE. The vocabulary starts with the 256 bytes. Repeatedly, the most frequent pair of adjacent tokens becomes a token
// (on a tie, the pair with smaller ids).
std::shared_ptr<const Tokenizer> train_bpe(const std::vector<Documents>& sources, const TrainingOptions& options);

// A word as tokens, and the number of its occurrences.
struct PieceWord {
  std::vector<uint32_t> pieces;
  int64_t count;
};
// Learns the merges of byte pair encoding (pair_merging.cpp). Returns them in order, and appends their tokens to `pieces`, the token texts
// by id. Two merges with the same text have the same token.
std::vector<Merges::Merge> learn_merges(std::vector<PieceWord> words, std::vector<std::string>& pieces, size_t vocab, int64_t min_count);

// The vocabulary is <unk>, then the most frequent words; equally frequent words are in byte order.
std::shared_ptr<const Tokenizer> train_words(const std::vector<Documents>& sources, const TrainingOptions& options);

// Returns the tokenizer without the tokens that these texts do not need; it divides the texts as before. Special tokens, the bytes of BPE,
// parts of merges, and the end token stay; all get new ids in the old order. Error: the tokenizer is not BPE, WordPiece or words.
std::shared_ptr<const Tokenizer> restrict_to(const Documents& documents, const Tokenizer& tokenizer);

}  // namespace ricci
