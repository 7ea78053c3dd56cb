// How well a model does over many batches: the mean negative log likelihood of a text, and how a classifier predicts.
#pragma once
#include <cmath>
#include <functional>
#include <optional>

#include "models/evaluation/confusion.h"
#include "models/evaluation/predictions.h"
#include "models/model.h"
#include "models/training/micro_batch.h"

namespace ricci {

struct Evaluation {
  double nats_per_token = 0;
  int64_t tokens = 0;                           // counted by the loss; documents for a classifier
  int64_t targets = 0;                          // other than -1
  std::optional<Predictions> predictions = {};  // by evaluate_predictions
  std::optional<Confusion> confusion = {};      // by evaluate_classes
  double perplexity() const { return std::exp(nats_per_token); }
  // The part of the documents, or of the sequences, that is predicted right. Nothing: predictions were not counted.
  std::optional<double> accuracy() const {
    if (confusion) return confusion->accuracy();
    return predictions ? std::optional(predictions->sequence_accuracy()) : std::nullopt;
  }
  // True if the loss counts every target, so that the nats are about the whole text.
  bool of_whole_text() const { return tokens == targets; }

  // The same nats over other units of the text, so that models with different tokenizers can be compared. The first token of a text
  // is never predicted, and its bytes and words are counted all the same.
  double bits_per_byte(int64_t bytes) const { return nats() / std::log(2.0) / static_cast<double>(bytes); }
  double word_perplexity(int64_t words) const { return std::exp(nats() / static_cast<double>(words)); }

 private:
  double nats() const { return nats_per_token * static_cast<double>(tokens); }
};

// Which batch, counted from 0; and how many are done.
using BatchOf = std::function<MicroBatch(int64_t index)>;
using AfterBatch = std::function<void(int64_t done)>;

// Over the batches batch(0) .. batch(count - 1), of which each is asked for once. `after_batch` is called after each.
// Nothing is recorded, dropout is off. Error: no token is counted.
Evaluation evaluate(const Model& model, int64_t count, const BatchOf& batch, const AfterBatch& after_batch = {});

// The same, and the predictions are counted.
Evaluation evaluate_predictions(const Model& model, int64_t count, const BatchOf& batch, const AfterBatch& after_batch = {});

// The same for a classifier, whose targets are classes of documents.
Evaluation evaluate_classes(const Model& model, int64_t count, const BatchOf& batch, const AfterBatch& after_batch = {});

}  // namespace ricci
