// Feeds: endless sequences of batches for training.
// Reading order of this folder: feed.cpp; document_order.h: documents in a random order; sequence_stream.h: sequences from them, shuffled
// and mixed; evaluation.h: batches that read a text once, in order.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/batch.h"
#include "data/shards/tokens.h"

namespace ricci {

// A row of a batch before it is read: the places of its tokens, one after another.
struct Row {
  const Tokens* tokens;  // must live until the row is read
  std::vector<TokenSpan> pieces;
  int64_t label = -1;
  int64_t from = 0;  // the tokens before this position predict nothing
};

// Reads the rows into a batch as wide as the longest of them, or as `width` if that is more. Rows without labels: each token but the last
// predicts the token after it, if that counts (the mask of the tokens). In tokens without a mask the one that starts every document
// (Tokens::first_id) does not count, because a model never writes it. Error: the data cannot be read.
Batch read_batch(std::span<const Row> rows, int64_t width = 0);

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
  // Rows [micro_batch * batch, (micro_batch + 1) * batch) of a step: the same rows however the step is divided into micro-batches.
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
  void go_to(int64_t step, const std::string&) override { number_ = step * micro_batches_; }

 private:
  Tokens tokens_;
  int64_t batch_, context_, micro_batches_;
  int64_t length_;      // tokens of a column
  int64_t number_ = 0;  // of the next micro-batch
};

// Error: batch or context is below 1, or the text is shorter than context + 1. `what` names the caller.
void check_text(const char* what, const Tokens& tokens, int64_t batch, int64_t context);

}  // namespace ricci
