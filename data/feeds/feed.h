// Batches of token ids, and what gives them to a training. Reading order: feed.h; text_batches.h: crops, columns and windows of a text;
// document_order.h and sequence_stream.h: a corpus in a random order; document_batches.h: documents under labels; sorter.h: generated rows.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

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
  // Of documents under a label (document_batches.h), which have no targets_bc. Else empty.
  std::vector<int64_t> labels_b = {}, lengths_b = {};
};

// The micro-batches of a training, one after the other, without an end.
class Feed {
 public:
  virtual ~Feed() = default;
  virtual Batch next() = 0;  // errors: those of reading the data
  // Where the feed stands behind a whole step, as a short text; empty where the number of the step tells it.
  virtual std::string place() const { return ""; }
  // Goes to the start of a step; place: that behind the step before it. Error: there is no such place.
  virtual void go_to(int64_t step, const std::string& place) = 0;
};

// Batches that are a function of the numbers of step and micro-batch.
template <class Batches> class NumberedFeed final : public Feed {
 public:
  NumberedFeed(Batches batches, int64_t micro_batches) : batches_(std::move(batches)), micro_batches_(micro_batches) {}
  Batch next() override {
    const int64_t number = next_++;
    return batches_.at(number / micro_batches_, number % micro_batches_);
  }
  void go_to(int64_t step, const std::string&) override { next_ = step * micro_batches_; }

 private:
  Batches batches_;
  int64_t micro_batches_, next_ = 0;
};

// Batches of a stream, which knows its place.
template <class Stream> class StreamFeed final : public Feed {
 public:
  StreamFeed(Stream stream, int64_t micro_batches, int64_t sequences)
      : stream_(std::move(stream)), micro_batches_(micro_batches), sequences_(sequences) {}
  Batch next() override {
    if (step_.empty())
      for (Batch& batch : stream_.next_step(micro_batches_, sequences_)) step_.push_back(std::move(batch));
    Batch batch = std::move(step_.front());
    step_.pop_front();
    return batch;
  }
  std::string place() const override { return stream_.place(); }
  void go_to(int64_t step, const std::string& place) override {
    if (step > 0) stream_.go_to(place);
  }

 private:
  Stream stream_;
  int64_t micro_batches_, sequences_;
  std::deque<Batch> step_;  // what is left of it
};

}  // namespace ricci
