// Batches of token ids, and feeds, which give them to a training. Reading order of this folder: feed.h: crops, columns and windows of a
// text; documents.h: whole documents, with a mask or under labels; document_order.h: documents in a random order, cut or packed into rows;
// sequence_stream.h: the shuffled rows of one or more corpora.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/shards/tokens.h"

namespace ricci {

inline constexpr int64_t kNoTarget = -1;

// targets_bc[b][c] is the token that follows ids_bc[b][c], or kNoTarget if the position does not count: the loss averages over the `scored`
// others. Rows that the text does not fill end with id 0 and kNoTarget.
struct Batch {
  int64_t batch = 0;
  int64_t context = 0;
  std::vector<int64_t> ids_bc;
  std::vector<int64_t> targets_bc;
  int64_t scored = 0;  // targets other than kNoTarget
  // Only of documents under labels, which have no targets_bc.
  std::vector<int64_t> labels_b = {}, lengths_b = {};
};

// A row before it is part of a batch.
struct Row {
  std::vector<int64_t> ids;
  std::vector<uint8_t> counts = {};  // 0 for each id that is not a target; empty if all of them are
  int64_t label = -1;
};

// Reads these tokens. If they have a mask, it decides which of them count. Else all count but the token that starts every document
// (Tokens::first_id), because a model never writes it.
Row read_row(const Tokens& tokens, std::span<const TokenSpan> pieces, int64_t label = -1);

// Rows whose ids predict the ids after them, as wide as the longest row, or `width` if that is more.
Batch predicting_batch(std::span<const Row> rows, int64_t width = 0);

// The micro-batches of a training, one after the other, without an end. Ranks that share a step read some of them and skip the others.
class Feed {
 public:
  virtual ~Feed() = default;
  virtual Batch next() = 0;  // errors: the data cannot be read
  virtual void skip() = 0;   // the next one is not read
  // The place of the feed after a step, as a short text; empty if it follows from the number of the step.
  virtual std::string place() const { return ""; }
  // Goes to the start of a step; place: the one after the step before it. Error: there is no such place.
  virtual void go_to(int64_t step, const std::string& place) = 0;
};

// Training: rows start anywhere in the text, drawn independently and uniformly from the seed.
class RandomCrops final : public Feed {
 public:
  // Errors: text shorter than context + 1, batch or context below 1.
  RandomCrops(Tokens tokens, int64_t batch, int64_t context, uint64_t seed, int64_t micro_batches = 1);
  // Rows [micro_batch * batch, (micro_batch + 1) * batch) of a step: the micro-batches of a step (gradient accumulation, ranks) have the
  // rows of the same step in one larger batch.
  Batch at(int64_t step, int64_t micro_batch = 0) const;
  Batch next() override;
  void skip() override { ++number_; }
  void go_to(int64_t step, const std::string&) override { number_ = step * micro_batches_; }

 private:
  Tokens tokens_;
  int64_t batch_, context_;
  uint64_t seed_;
  int64_t micro_batches_, number_ = 0;  // a step's; the next one's
};

// Training as in the Dispatcher paper: the text is cut into columns of equal length, which are read side by side in consecutive
// windows. Column i predicts the tokens i * L + 1 ... (i + 1) * L from those before them, L = floor((size - 1) / columns); the
// last (size - 1) mod columns tokens of the text are no targets. The last window of an epoch ends with the columns: if context does not
// divide L, it begins with tokens that the window before had, too, and scores only the others.
class ColumnBatches final : public Feed {
 public:
  // A step reads one window of all columns, `batch` columns at a time.
  // Errors: columns shorter than context; batch or context below 1; columns that batch does not divide.
  ColumnBatches(Tokens tokens, int64_t columns, int64_t batch, int64_t context);
  int64_t per_epoch() const { return (length_ + context_ - 1) / context_; }  // steps
  // Columns [micro_batch * batch, (micro_batch + 1) * batch) of window number step mod per_epoch(), in every epoch the same.
  Batch at(int64_t step, int64_t micro_batch = 0) const;
  Batch next() override;
  void skip() override { ++number_; }
  void go_to(int64_t step, const std::string&) override { number_ = step * (columns_ / batch_); }

 private:
  Tokens tokens_;
  int64_t columns_, batch_, context_;
  int64_t length_;      // each column's
  int64_t number_ = 0;  // the next micro-batch's
};

// Evaluation over a whole text: windows of `context` tokens, each `stride` after the one before. The first window
// scores all its targets, the others the last `stride`. So every token but the first is scored once, with at least
// context - stride tokens before it (fewer at the start of the text). stride = context: windows that do not overlap.
// No window scores what its positions before `from` predict.
class Windows {
 public:
  // Errors: text shorter than context + 1, batch or context below 1, stride outside 1 ... context, from outside 0 ... context - 1.
  Windows(Tokens tokens, int64_t batch, int64_t context, int64_t stride, int64_t from = 0);
  int64_t count() const { return count_; }  // windows
  int64_t batches() const { return (count_ + batch_ - 1) / batch_; }
  int64_t batch() const { return batch_; }  // windows in each batch but the last: as asked, but no more than there are
  // The windows [index * batch, (index + 1) * batch); the last batch has fewer rows if there are fewer.
  Batch at(int64_t index) const;

 private:
  Tokens tokens_;
  int64_t batch_, context_, stride_, from_, count_;
};

}  // namespace ricci
