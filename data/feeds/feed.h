// Batches of token ids, and feeds: endless sequences of batches for training. Models know nothing of files, and files nothing of models,
// because a Batch is all that passes between them.
// Reading order of this folder: feed.cpp; document_order.h: documents in a random order; sequence_stream.h: sequences from them, shuffled
// and mixed; evaluation.h: batches that read a text once, in order.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/shards/tokens.h"

namespace ricci {

inline constexpr int64_t kNoTarget = -1;

// targets_bc[b][c] is the token that follows ids_bc[b][c], or kNoTarget if that position does not count: the loss is the mean over the
// `scored` others. A row that is shorter than the batch is filled up with id 0 and kNoTarget.
struct Batch {
  int64_t batch = 0;
  int64_t context = 0;
  std::vector<int64_t> ids_bc;
  std::vector<int64_t> targets_bc;
  int64_t scored = 0;                                  // targets other than kNoTarget
  std::vector<int64_t> labels_b = {}, lengths_b = {};  // only for a classifier; then targets_bc is empty
};

// A row of a batch: each id but the last predicts the id after it.
struct Row {
  std::vector<int64_t> ids;
  std::vector<uint8_t> counts = {};  // 0 for an id that is not a target; empty if all ids are
  int64_t label = -1;
  int64_t from = 0;  // the ids before this position predict nothing
};

// Reads these pieces of the tokens, one after another. Tokens with a mask have it in `counts`. In other tokens the one that starts every
// document (Tokens::first_id) does not count, because a model never writes it.
Row read_row(const Tokens& tokens, std::span<const TokenSpan> pieces, int64_t label = -1);
Row read_row(const Tokens& tokens, const TokenSpan& piece, int64_t from = 0);

// The rows as a batch that is as wide as the longest row, or `width` if that is more: targets are the next ids, or the rows' labels.
Batch predicting_batch(std::span<const Row> rows, int64_t width = 0);
Batch labelled_batch(std::span<const Row> rows, int64_t width = 0);

// The micro-batches of a training run, without an end. Ranks that share a step read some of them and skip the others.
class Feed {
 public:
  virtual ~Feed() = default;
  virtual Batch next() = 0;  // error: the data cannot be read
  virtual void skip() = 0;   // passes over the next batch without reading it
  // The place of the feed after a step, as a short text for the checkpoint; empty if it follows from the number of the step.
  virtual std::string place() const { return ""; }
  // Goes to the start of a step. place: as place() gave it after the step before. Error: the data has no such place.
  virtual void go_to(int64_t step, const std::string& place) = 0;
};

// Rows start at random positions of the text, drawn independently and uniformly.
class RandomCrops final : public Feed {
 public:
  // Errors: text shorter than context + 1, batch or context below 1.
  RandomCrops(Tokens tokens, int64_t batch, int64_t context, uint64_t seed, int64_t micro_batches = 1);
  // Rows [micro_batch * batch, (micro_batch + 1) * batch) of a step, because a step has the same rows whether it is computed as one batch
  // or as multiple micro-batches (gradient accumulation, ranks).
  Batch at(int64_t step, int64_t micro_batch = 0) const;
  Batch next() override;
  void skip() override { ++number_; }
  void go_to(int64_t step, const std::string&) override { number_ = step * micro_batches_; }

 private:
  Tokens tokens_;
  int64_t batch_, context_;
  uint64_t seed_;
  int64_t micro_batches_, number_ = 0;  // in a step; of the next one
};

// The order of the Dispatcher paper: the text is cut into columns of equal length, and all columns are read in consecutive windows.
// Column i predicts the tokens i * L + 1 ... (i + 1) * L, L = floor((size - 1) / columns), each from the tokens before it. The last
// (size - 1) mod columns tokens of the text are not targets. If context does not divide L, the last window of an epoch begins with tokens
// of the window before, and scores only the others.
class ColumnBatches final : public Feed {
 public:
  // A step reads one window of every column, `batch` columns at a time.
  // Errors: columns shorter than context; batch or context below 1; a number of columns that batch does not divide.
  ColumnBatches(Tokens tokens, int64_t columns, int64_t batch, int64_t context);
  int64_t per_epoch() const { return (length_ + context_ - 1) / context_; }  // steps
  // Columns [micro_batch * batch, (micro_batch + 1) * batch) of window number step mod per_epoch(). All epochs are equal.
  Batch at(int64_t step, int64_t micro_batch = 0) const;
  Batch next() override;
  void skip() override { ++number_; }
  void go_to(int64_t step, const std::string&) override { number_ = step * (columns_ / batch_); }

 private:
  Tokens tokens_;
  int64_t columns_, batch_, context_;
  int64_t length_;      // tokens of a column
  int64_t number_ = 0;  // the next micro-batch
};

// Error: batch or context is below 1, or the text is shorter than context + 1. `what` names the caller.
void check_text(const char* what, const Tokens& tokens, int64_t batch, int64_t context);

}  // namespace ricci
