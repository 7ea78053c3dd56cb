// Evaluation: the mean negative log likelihood of a text, the negative log likelihood of every single token, and the predictions of a
// classifier.
#pragma once
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "cuda/ranks/ranks.h"
#include "models/inference/predictions.h"
#include "models/model.h"

namespace ricci {

struct Evaluation {
  double nats_per_token = 0;                    // per document for a classifier
  int64_t tokens = 0;                           // counted by the loss; documents for a classifier
  int64_t targets = 0;                          // other than -1
  std::optional<Predictions> predictions = {};  // by evaluate_predictions
  std::optional<Confusion> confusion = {};      // by evaluate_classes
  double perplexity() const { return std::exp(nats_per_token); }
  // The share of documents, or of sequences, that are predicted right; nullopt if predictions were not counted.
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

// A batch by its number, from 0; and a call with the number of batches that are done.
using BatchOf = std::function<MicroBatch(int64_t index)>;
using AfterBatch = std::function<void(int64_t done)>;

// The batches are batch(0) .. batch(count - 1), each asked for once. Nothing is recorded, dropout is off. Several ranks share the batches
// and have the same result, the one that one process has, bit for bit: batch i belongs to rank i mod R. Where one of them throws Stopped,
// all do in the end. Error: no token is counted.
Evaluation evaluate(
    const Model& model, int64_t count, const BatchOf& batch, const AfterBatch& after_batch = {}, Ranks& ranks = Ranks::alone());

// The same, and the predictions are counted.
Evaluation evaluate_predictions(
    const Model& model, int64_t count, const BatchOf& batch, const AfterBatch& after_batch = {}, Ranks& ranks = Ranks::alone());

// The same for a classifier, whose targets are classes of documents.
Evaluation evaluate_classes(
    const Model& model, int64_t count, const BatchOf& batch, const AfterBatch& after_batch = {}, Ranks& ranks = Ranks::alone());

// The probabilities of the classes, by a classifier: f64 [b k] on the CPU.
Tensor class_probabilities(const Model& model, const Inputs& inputs);

// -log p(target) in nats for every target of a batch, row by row; NaN where the target is -1. Positions that the loss leaves out
// (model.loss_from) have theirs too. Nothing is recorded, dropout is off.
// Errors: a classifier, a coarse model; a target outside of the vocabulary.
std::vector<double> token_nats(const Model& model, const Inputs& inputs);

// The first position of a sequence of `context` tokens that the model's loss counts.
int64_t first_scored(const Model& model, int64_t context);

// The number of sequences of `context` tokens to compute at a time, 1 .. 32, so that their logits are at most 2^25 numbers.
int64_t rows_at_once(const Model& model, int64_t context);

}  // namespace ricci
