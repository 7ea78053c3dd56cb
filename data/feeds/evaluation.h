// Batches for evaluation: they read a text, or its documents, once and in order, because a score must not depend on a random draw. The
// documents that count are chosen here for training as well, because otherwise the two losses would average over different documents.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "data/feeds/feed.h"
#include "data/shards/tokens.h"

namespace ricci {

class EvaluationBatches {
 public:
  // Windows of `context` tokens, each `stride` after the one before. The first window scores all its targets, the others the last `stride`.
  // So every token but the first is scored once, with at least context - stride tokens before it (fewer at the start of the text). Windows
  // do not overlap if stride = context. In every window the positions before `from` predict nothing that is scored.
  // Errors: text shorter than context + 1, batch or context below 1, stride outside 1 ... context, from outside 0 ... context - 1.
  static EvaluationBatches windows(const Tokens& tokens, int64_t batch, int64_t context, int64_t stride, int64_t from = 0);
  // Every document once. Tokens with a mask come from keep_masked() for this context. Documents with labels are cut at the context.
  // Errors: neither mask nor labels; batch or context below 1.
  static EvaluationBatches documents(const Tokens& tokens, int64_t batch, int64_t context);

  int64_t rows() const { return rows_; }  // windows or documents
  int64_t batches() const { return (rows_ + batch_ - 1) / batch_; }
  int64_t batch() const { return batch_; }  // rows of every batch but the last: the requested number, or all if they are fewer
  int64_t context() const { return context_; }
  int64_t stride() const { return stride_; }  // 0 for documents
  bool has_answers() const { return stride_ == 0 && tokens_.has_mask(); }
  // The rows [index * batch, (index + 1) * batch); the last batch can have fewer.
  Batch at(int64_t index) const;
  void keep_first(int64_t batches);  // leaves out the batches after them

 private:
  EvaluationBatches(const Tokens& tokens, int64_t batch, int64_t context) : tokens_(tokens), batch_(batch), context_(context) {}
  Row row(int64_t number) const;

  Tokens tokens_;
  int64_t batch_, context_;
  int64_t rows_ = 0, stride_ = 0, from_ = 0;
  std::vector<int64_t> before_ = {0};  // documents before each shard, and in all
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

}  // namespace ricci
