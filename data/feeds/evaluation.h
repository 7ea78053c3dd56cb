// Evaluation batches read a text or its documents once, in order. Training also selects its documents with keep_masked(), so the training
// loss and the evaluation loss are averages over documents selected in the same way.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>

#include "data/feeds/feed.h"
#include "data/shards/tokens.h"

namespace ricci {

class EvaluationBatches {
 public:
  // Windows of `context` tokens, each `stride` tokens after the previous one. In the first window, all targets are scored; in the others,
  // only the last `stride`. So every token but the first is scored once. Positions before `from` in a window are not scored.
  // Errors: the text is shorter than context + 1 tokens, batch or context is below 1, stride is outside 1 ... context, from is outside
  // 0 ... context - 1.
  static EvaluationBatches windows(const Tokens& tokens, int64_t batch, int64_t context, int64_t stride, int64_t from = 0);
  // Reads every document once. Tokens with a mask must come from keep_masked() for this context. Documents with labels are cut at the
  // context. Errors: the tokens have neither a mask nor labels; batch or context is below 1.
  static EvaluationBatches documents(const Tokens& tokens, int64_t batch, int64_t context);

  int64_t rows() const { return rows_; }  // windows or documents
  int64_t batches() const { return (rows_ + batch_ - 1) / batch_; }
  int64_t batch() const { return batch_; }  // rows per batch; the last batch can be smaller
  int64_t context() const { return context_; }
  int64_t stride() const { return stride_; }  // 0 for documents
  bool has_answers() const { return stride_ == 0 && tokens_.has_mask(); }
  Batch at(int64_t index) const;
  void keep_first(int64_t batches);  // omits all later batches

 private:
  EvaluationBatches(const Tokens& tokens, int64_t rows, int64_t batch, int64_t context, int64_t stride = 0, int64_t from = 0)
      : tokens_(tokens), rows_(rows), batch_(std::min(batch, rows)), context_(context), stride_(stride), from_(from) {}
  Row row(int64_t number) const;

  Tokens tokens_;
  int64_t rows_, batch_, context_, stride_, from_;
};

struct MaskedCounts {
  int64_t all = 0;  // documents that are kept
  int64_t cut = 0, left_out = 0;
  void operator+=(const MaskedCounts& other);
};

// Keeps the documents with a mask that have a scored target within this context, and cuts each to at most context + 1 tokens. A corpus
// without a mask is not changed. Errors: no document is left; context is below 1.
std::pair<Tokens, MaskedCounts> keep_masked(const Tokens& tokens, int64_t context);

// Errors: the corpus has no tokens or no labels.
void check_labelled(const Tokens& tokens);

}  // namespace ricci
