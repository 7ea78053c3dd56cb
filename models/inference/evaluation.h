// Evaluation: the mean negative log-likelihood of a text or of single tokens, and counts of correct predictions. The last batch can be
// shorter, so means are over tokens, not over batches.
#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "cuda/ranks/ranks.h"
#include "models/model.h"

namespace ricci {

// A prediction is the token with the largest logit; on a tie, the first one.
struct Predictions {
  int64_t tokens = 0, tokens_right = 0;        // not counting targets of -1
  int64_t sequences = 0, sequences_right = 0;  // a sequence is correct if all its targets are predicted correctly

  // Adds the predictions of a batch. Error: the shapes do not match.
  void add(const Tensor& logits_bcv, const Tensor& targets_bc);
  void add_other_ranks(Ranks& ranks);
  double token_accuracy() const;     // 0 for no tokens
  double sequence_accuracy() const;  // 0 for no sequences
};

// Precision: the fraction of correct predictions among the sequences predicted as a class. Recall: the fraction among the sequences of the
// class. F1: 2 p r / (p + r). Each is 0 instead of 0 / 0.
struct ClassScores {
  double precision = 0, recall = 0, f1 = 0;
};

// Counts a classifier's predictions by target class and predicted class.
class Confusion {
 public:
  // Error: `classes` is below 2.
  explicit Confusion(int64_t classes);

  // Counts one sequence. Error: a value is not a class.
  void add(int64_t target, int64_t predicted);
  // Counts the sequences of a batch, except targets of -1. Errors: the shapes do not match; a target is not a class.
  void add(const Tensor& logits_bk, const Tensor& targets_b);
  void add_other_ranks(Ranks& ranks);

  int64_t classes() const { return classes_; }
  int64_t total() const;
  int64_t count(int64_t target, int64_t predicted) const { return counts_[static_cast<size_t>(target * classes_ + predicted)]; }

  double accuracy() const;  // 0 without counts
  ClassScores scores(int64_t of_class) const;
  // Means over the classes that occur as a target or a prediction.
  ClassScores macro() const;

 private:
  std::pair<int64_t, int64_t> sums(int64_t of_class) const;  // number of targets and of predictions of the class

  int64_t classes_;
  std::vector<int64_t> counts_;  // one row per target class
};

struct Evaluation {
  double nats_per_token = 0;                    // per document for a classifier
  int64_t tokens = 0;                           // scored tokens; documents for a classifier; 0 if the evaluation was stopped
  int64_t targets = 0;                          // targets other than -1
  std::optional<Predictions> predictions = {};  // on request
  std::optional<Confusion> confusion = {};      // for a classifier
  bool was_stopped() const { return tokens == 0; }
  double perplexity() const { return std::exp(nats_per_token); }
  // The fraction of documents or sequences that are predicted correctly; nullopt without predictions.
  std::optional<double> accuracy() const {
    if (confusion) return confusion->accuracy();
    return predictions ? std::optional(predictions->sequence_accuracy()) : std::nullopt;
  }
  // True if every target is scored. If false, the nats do not cover the full text.
  bool of_whole_text() const { return tokens == targets; }

  // Both values can be compared between tokenizers. The first token of a text is never predicted, but its bytes and words are included.
  double bits_per_byte(int64_t bytes) const { return nats() / std::log(2.0) / static_cast<double>(bytes); }
  double word_perplexity(int64_t words) const { return std::exp(nats() / static_cast<double>(words)); }

 private:
  double nats() const { return nats_per_token * static_cast<double>(tokens); }
};

// BatchOf returns a batch by its index, from 0; AfterBatch receives the number of finished batches.
using BatchOf = std::function<Batch(int64_t index)>;
using AfterBatch = std::function<void(int64_t done)>;

// Evaluates batch(0) .. batch(count - 1) once each. Nothing is recorded, and dropout is off. R ranks share the batches (batch i belongs to
// rank i mod R), and all return the result of a single process, bit for bit. Once stop() returns true on one rank, all ranks stop without a
// result. Error: no token is scored.
Evaluation evaluate(const Model& model, int64_t count, const BatchOf& batch, const AfterBatch& after_batch = {},
    Ranks& ranks = Ranks::alone(), bool with_predictions = false, bool (*stop)() = nullptr);

// The class probabilities of a classifier, f64 [b k] on the CPU.
Tensor class_probabilities(const Model& model, const Batch& batch);

// Returns -log p(target) in nats for every target of a batch, row by row; NaN for a target of -1. Includes positions that the loss omits
// (model.loss_from). Nothing is recorded, and dropout is off. Errors: the model is a classifier or coarse; a target is outside the
// vocabulary.
std::vector<double> token_nats(const Model& model, const Batch& batch);

// The first scored position of a sequence of `context` tokens.
int64_t first_scored(const Model& model, int64_t context);

// The number of sequences of `context` tokens to compute at a time, 1 .. 32: if possible, their logits have at most 2^25 elements. The
// logits of a full batch would use most of an evaluation's memory.
int64_t rows_at_once(const Model& model, int64_t context);

}  // namespace ricci
