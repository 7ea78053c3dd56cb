// Batches of token ids: crops, columns and windows of a text, documents under labels; and feeds, which give them to a training. Reading
// order of this folder: feed.h; document_order.h: documents in a random order; packing.h: several of them in a row; sequence_stream.h:
// the sequences of one or several corpora; sorter.h: generated rows.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/range.h"
#include "data/shards/tokens.h"

namespace ricci {

inline constexpr int64_t kNoTarget = -1;

// targets_bc[b][c] is the token that follows ids_bc[b][c] in the text, or kNoTarget where a position does not count: the loss averages
// over the `scored` others. Rows that the text does not fill end with id 0 and kNoTarget.
struct Batch {
  int64_t batch = 0;
  int64_t context = 0;
  std::vector<int64_t> ids_bc;
  std::vector<int64_t> targets_bc;
  int64_t scored = 0;  // targets other than kNoTarget
  // For documents under a label (DocumentBatches), which have no targets_bc. Else empty.
  std::vector<int64_t> labels_b = {}, lengths_b = {};
};

// Positions that would predict `id`, with which documents start (TokenSource::first_id), do not count. An id of -1 leaves out none.
void leave_out(int64_t id, Batch& batch, std::span<int64_t> targets);

// The steps of a training, one after the other, without an end. A step has a number of micro-batches; a rank that shares it asks for a
// range of them.
class Feed {
 public:
  virtual ~Feed() = default;
  virtual std::vector<Batch> next() = 0;  // the micro-batches of a step, or its own of them; errors: the data cannot be read
  // The place of the feed after the steps taken so far, as a short text; empty where it follows from the number of the step.
  virtual std::string place() const { return ""; }
  // Goes to the start of a step; place: the one after the step before it. Error: there is no such place.
  virtual void go_to(int64_t step, const std::string& place) = 0;
};

// Those micro-batches of a step, where they are a function of their numbers.
template <class Batches> std::vector<Batch> step_of(const Batches& batches, int64_t step, Range micro_batches) {
  std::vector<Batch> all;
  for (int64_t i = micro_batches.lo; i < micro_batches.hi; ++i) all.push_back(batches.at(step, i));
  return all;
}

template <class Batches> class NumberedFeed final : public Feed {
 public:
  NumberedFeed(Batches batches, Range micro_batches) : batches_(std::move(batches)), micro_batches_(micro_batches) {}
  std::vector<Batch> next() override { return step_of(batches_, step_++, micro_batches_); }
  void go_to(int64_t step, const std::string&) override { step_ = step; }

 private:
  Batches batches_;
  Range micro_batches_;
  int64_t step_ = 0;
};

// Batches of a stream, which knows its place. All micro-batches of a step are passed, whichever of them are read.
template <class Stream> class StreamFeed final : public Feed {
 public:
  StreamFeed(Stream stream, Range mine, int64_t micro_batches, int64_t sequences)
      : stream_(std::move(stream)), mine_(mine), micro_batches_(micro_batches), sequences_(sequences) {}
  std::vector<Batch> next() override { return stream_.next_step(mine_, micro_batches_, sequences_); }
  std::string place() const override { return stream_.place(); }
  void go_to(int64_t step, const std::string& place) override {
    if (step > 0) stream_.go_to(place);
  }

 private:
  Stream stream_;
  Range mine_;
  int64_t micro_batches_, sequences_;
};

// The batches below hold no state: a batch is a function of its number, so a run that resumes needs only that number.

// Training: rows start anywhere in the text, drawn independently and uniformly from the seed.
class RandomCrops {
 public:
  // Errors: text shorter than context + 1, batch or context below 1.
  RandomCrops(Tokens tokens, int64_t batch, int64_t context, uint64_t seed);
  // Rows [micro_batch * batch, (micro_batch + 1) * batch) of a step: the micro-batches of a step (gradient accumulation, several
  // devices) have the rows of the same step in one larger batch.
  Batch at(int64_t step, int64_t micro_batch = 0) const;

 private:
  Tokens tokens_;
  int64_t batch_, context_;
  uint64_t seed_;
};

// Training as in the Dispatcher paper: the text is cut into columns of equal length, which are read side by side in consecutive
// windows. Column i predicts the tokens i * L + 1 ... (i + 1) * L from those before them, L = floor((size - 1) / columns); the
// last (size - 1) mod columns tokens of the text are no targets. The last window of an epoch ends with the columns: where context
// does not divide L, it begins with tokens that the window before had, too, and scores only the others.
class ColumnBatches {
 public:
  // A step reads one window of all columns, `batch` columns at a time.
  // Errors: columns shorter than context; batch or context below 1; columns that batch does not divide.
  ColumnBatches(Tokens tokens, int64_t columns, int64_t batch, int64_t context);
  int64_t per_epoch() const { return (length_ + context_ - 1) / context_; }  // steps
  // Columns [micro_batch * batch, (micro_batch + 1) * batch) of window number step mod per_epoch(), in every epoch the same.
  Batch at(int64_t step, int64_t micro_batch = 0) const;

 private:
  Tokens tokens_;
  int64_t columns_, batch_, context_;
  int64_t length_;  // each column's
};

// Evaluation over a whole text: windows of `context` tokens, each `stride` after the one before. The first window
// scores all its targets, the others the last `stride`, so that every token but the first is scored once, with at least
// context - stride tokens before it (fewer at the start of the text). stride = context: windows that do not overlap.
// No window scores what its positions before `from` predict.
class Windows {
 public:
  // Errors: text shorter than context + 1, batch or context below 1, stride outside 1 ... context, from outside 0 ... context - 1.
  Windows(Tokens tokens, int64_t batch, int64_t context, int64_t stride, int64_t from = 0);
  int64_t count() const { return count_; }  // windows
  int64_t batches() const { return (count_ + batch_ - 1) / batch_; }
  int64_t context() const { return context_; }
  int64_t batch() const { return batch_; }  // windows in each batch but the last: as asked, but no more than there are
  // The windows [index * batch, (index + 1) * batch); the last batch has fewer rows if there are fewer.
  Batch at(int64_t index) const;

 private:
  Tokens tokens_;
  int64_t batch_, context_, stride_, from_, count_;
};

// Documents under a label, which a classifier learns from and is evaluated on.
struct LabelledIds {
  std::vector<int64_t> ids;
  int64_t label = -1;
};

// One row per document, in Batch::labels_b its label and in lengths_b its length; after the document the row is filled with 0.
// The rows are as long as the longest document, or `width` where that is more.
Batch batch_of(std::span<const LabelledIds> documents, int64_t width = 0);

// The first `context` tokens of one document; the others are left out.
LabelledIds read_document(const Tokens& tokens, const TokenSpan& document, int64_t label, int64_t context);

// Error: the documents have no labels, or there are none.
void check_labelled(const Tokens& tokens);

// Evaluation: every document once, in their order.
class DocumentBatches {
 public:
  // Errors: no labels; batch or context below 1.
  DocumentBatches(Tokens tokens, int64_t batch, int64_t context);
  int64_t documents() const { return before_.back(); }
  int64_t batches() const { return (documents() + batch_ - 1) / batch_; }
  int64_t batch() const { return batch_; }  // documents in each batch but the last: as asked, but no more than there are
  // The documents [index * batch, (index + 1) * batch); the last batch has fewer if there are fewer.
  Batch at(int64_t index) const;

 private:
  Tokens tokens_;
  int64_t batch_, context_;
  std::vector<int64_t> before_;  // documents before each shard, and of all
};

}  // namespace ricci
