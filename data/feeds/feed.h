// Batches of token ids, and what gives them to a training. Reading order: feed.h; batches.h: crops, columns and windows of a text, and
// documents under labels; sequence_stream.h: corpora in a random order; sorter.h: generated rows.
#pragma once
#include <cstdint>
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
  // Of documents under a label (batches.h: DocumentBatches), which have no targets_bc. Else empty.
  std::vector<int64_t> labels_b = {}, lengths_b = {};
};

// The steps of a training, one after the other, without an end.
class Feed {
 public:
  virtual ~Feed() = default;
  virtual std::vector<Batch> next() = 0;  // the micro-batches of a step; errors: the data cannot be read
  // The place of the feed behind the steps taken so far, as a short text; empty where the number of the step tells it.
  virtual std::string place() const { return ""; }
  // Goes to the start of a step; place: the one behind the step before it. Error: there is no such place.
  virtual void go_to(int64_t step, const std::string& place) = 0;
};

// The micro-batches of a step, where they are a function of their numbers.
template <class Batches> std::vector<Batch> step_of(const Batches& batches, int64_t step, int64_t micro_batches) {
  std::vector<Batch> all;
  for (int64_t i = 0; i < micro_batches; ++i) all.push_back(batches.at(step, i));
  return all;
}

template <class Batches> class NumberedFeed final : public Feed {
 public:
  NumberedFeed(Batches batches, int64_t micro_batches) : batches_(std::move(batches)), micro_batches_(micro_batches) {}
  std::vector<Batch> next() override { return step_of(batches_, step_++, micro_batches_); }
  void go_to(int64_t step, const std::string&) override { step_ = step; }

 private:
  Batches batches_;
  int64_t micro_batches_, step_ = 0;
};

// Batches of a stream, which knows its place.
template <class Stream> class StreamFeed final : public Feed {
 public:
  StreamFeed(Stream stream, int64_t micro_batches, int64_t sequences)
      : stream_(std::move(stream)), micro_batches_(micro_batches), sequences_(sequences) {}
  std::vector<Batch> next() override { return stream_.next_step(micro_batches_, sequences_); }
  std::string place() const override { return stream_.place(); }
  void go_to(int64_t step, const std::string& place) override {
    if (step > 0) stream_.go_to(place);
  }

 private:
  Stream stream_;
  int64_t micro_batches_, sequences_;
};

}  // namespace ricci
