// Feeds: endless sequences of batches for training.
// Reading order of this folder: feed.cpp, document_order.h (documents in a random order), sequence_stream.h (shuffled and mixed sequences
// of these documents), evaluation.h (batches that read a text once, in order).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/batch.h"
#include "data/shards/tokens.h"

namespace ricci {

// A row of a batch before it is read: the positions of its tokens, in order.
struct Row {
  const Tokens* tokens;  // must live until the row is read
  std::vector<TokenSpan> pieces;
  int64_t label = -1;
  int64_t from = 0;  // targets of earlier positions are not scored
};

// Reads the rows into a batch as wide as the longest row, or as `width` if that is larger. In rows without labels, each token but the last
// predicts the next token, if that token is scored. Without a mask, all tokens are scored except the id that starts every document
// (Tokens::first_id). Error: the data cannot be read.
Batch read_batch(std::span<const Row> rows, int64_t width = 0);

// The rows of a training run as endless batches. Each rank reads some batches of a step and skips the others.
class Feed {
 public:
  virtual ~Feed() = default;
  Batch next();  // error: the data cannot be read
  void skip();   // skips the next batch without reading it
  // The position after a step, as a short text for the checkpoint; empty if the step number determines it.
  virtual std::string place() const { return ""; }
  // Goes to the start of a step; `place` is the result of place() after the previous step. Error: the data has no such position.
  virtual void go_to(int64_t step, const std::string& place) = 0;

 protected:
  Feed(int64_t batch, int64_t width) : batch_(batch), width_(width) {}  // rows per batch; width as in read_batch
  virtual Row next_row() = 0;

 private:
  int64_t batch_, width_;
};

// Rows start at random positions of the text, sampled independently and uniformly.
class RandomCrops final : public Feed {
 public:
  // Errors: the text is shorter than context + 1 tokens, batch or context is below 1.
  RandomCrops(Tokens tokens, int64_t batch, int64_t context, uint64_t seed, int64_t micro_batches = 1);
  void go_to(int64_t step, const std::string&) override { number_ = step * per_step_; }

 private:
  Row next_row() override;

  Tokens tokens_;
  int64_t context_, per_step_;  // per_step_: rows per step
  uint64_t seed_;
  int64_t number_ = 0;  // index of the next row
};

// The order of the Dispatcher paper: the text is cut into columns of equal length L, one per row of a step, and each column is read in
// consecutive windows. Column i predicts the tokens i * L + 1 ... (i + 1) * L, with L = floor((size - 1) / columns). If L is not a multiple
// of the context, the last window of an epoch repeats tokens of the previous window, and only the new ones are scored. All epochs are
// identical.
class ColumnBatches final : public Feed {
 public:
  // Errors: the columns are shorter than the context; batch or context is below 1.
  ColumnBatches(Tokens tokens, int64_t batch, int64_t context, int64_t micro_batches = 1);
  int64_t per_epoch() const { return (length_ + context_ - 1) / context_; }  // steps
  void go_to(int64_t step, const std::string&) override { number_ = step * columns_; }

 private:
  Row next_row() override;

  Tokens tokens_;
  int64_t context_, columns_;
  int64_t length_ = 0;  // tokens per column
  int64_t number_ = 0;  // index of the next row
};

// Errors: batch or context is below 1; the text is shorter than context + 1 tokens. `what` names the caller.
void check_text(const char* what, const Tokens& tokens, int64_t batch, int64_t context);

}  // namespace ricci
