// Batches for evaluation: they read a text, or its documents, once and in order, because a score must not depend on a random draw. The
// documents that count are chosen here for training as well, because otherwise the two losses would average over different documents.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "data/feeds/feed.h"
#include "data/shards/tokens.h"

namespace ricci {

// Windows of `context` tokens, each `stride` after the one before. The first window scores all its targets, the others the last `stride`.
// So every token but the first is scored once, with at least context - stride tokens before it (fewer at the start of the text). Windows do
// not overlap if stride = context. In every window the positions before `from` predict nothing that is scored.
class Windows {
 public:
  // Errors: text shorter than context + 1, batch or context below 1, stride outside 1 ... context, from outside 0 ... context - 1.
  Windows(Tokens tokens, int64_t batch, int64_t context, int64_t stride, int64_t from = 0);
  int64_t count() const { return count_; }  // windows
  int64_t batches() const { return (count_ + batch_ - 1) / batch_; }
  int64_t batch() const { return batch_; }  // windows in every batch but the last: the requested number, or all if they are fewer
  // The windows [index * batch, (index + 1) * batch); the last batch can have fewer.
  Batch at(int64_t index) const;

 private:
  Tokens tokens_;
  int64_t batch_, context_, stride_, from_, count_;
};

struct MaskedCounts {
  int64_t all = 0;  // documents that are kept
  int64_t cut = 0, left_out = 0;
};

// Keeps the documents with a mask that a model with this context can learn from, because a token that counts is predicted. Each is cut
// after the last token that can be predicted. Errors: no document is left; context below 1.
std::pair<Tokens, MaskedCounts> keep_masked(const Tokens& tokens, int64_t context);

// Error: the documents have no labels.
void check_labelled(const Tokens& tokens);

// Every document once, in order. With a mask: the documents that keep_masked() keeps. Else: their labels, from at most `context` tokens.
class DocumentBatches {
 public:
  // Errors: neither mask nor labels; keep_masked's; batch or context below 1.
  DocumentBatches(const Tokens& tokens, int64_t batch, int64_t context);
  int64_t documents() const { return before_.back(); }
  int64_t batches() const { return (documents() + batch_ - 1) / batch_; }
  int64_t batch() const { return batch_; }  // documents in every batch but the last: the requested number, or all if they are fewer
  // The documents [index * batch, (index + 1) * batch); the last batch can have fewer.
  Batch at(int64_t index) const;

 private:
  Tokens tokens_;
  int64_t batch_, context_;
  std::vector<int64_t> before_;  // documents before each shard, and in all
};

}  // namespace ricci
