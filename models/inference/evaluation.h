// Evaluation: the mean negative log likelihood of a text or of single tokens, and counts of right predictions. The last batch can be
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

// A prediction is the target with the largest logit, the first of equal ones.
struct Predictions {
  int64_t tokens = 0, tokens_right = 0;        // without targets of -1
  int64_t sequences = 0, sequences_right = 0;  // right: all targets of the sequence are

  // Adds the predictions of a batch. Error: the shapes do not match.
  void add(const Tensor& logits_bcv, const Tensor& targets_bc);
  void add_other_ranks(Ranks& ranks);  // adds the counts of the other ranks
  double token_accuracy() const;       // 0 for no tokens
  double sequence_accuracy() const;    // 0 for no sequences
};

// Precision: the share of right predictions among the sequences predicted as a class. Recall: their share among the sequences of the class.
// F1: 2 p r / (p + r). Each is 0 instead of 0 / 0.
struct ClassScores {
  double precision = 0, recall = 0, f1 = 0;
};

// Counts a classifier's predictions by class and predicted class.
class Confusion {
 public:
  // Error: there are fewer than two classes.
  explicit Confusion(int64_t classes);

  // Counts one sequence. Error: a value is not a class.
  void add(int64_t target, int64_t predicted);
  // Counts a batch, without targets of -1. Errors: the shapes do not match; a target is not a class.
  void add(const Tensor& logits_bk, const Tensor& targets_b);
  void add_other_ranks(Ranks& ranks);  // adds the counts of the other ranks

  int64_t classes() const { return classes_; }
  int64_t total() const;
  int64_t count(int64_t target, int64_t predicted) const { return counts_[static_cast<size_t>(target * classes_ + predicted)]; }

  double accuracy() const;  // 0 without counts
  ClassScores scores(int64_t of_class) const;
  // Means over the classes that occur as a target or a prediction.
  ClassScores macro() const;

 private:
  std::pair<int64_t, int64_t> sums(int64_t of_class) const;  // targets and predictions of the class

  int64_t classes_;
  std::vector<int64_t> counts_;  // a row per target
};

struct Evaluation {
  double nats_per_token = 0;                    // per document for a classifier
  int64_t tokens = 0;                           // scored tokens; documents for a classifier; 0 if it was stopped
  int64_t targets = 0;                          // other than -1
  std::optional<Predictions> predictions = {};  // on request
  std::optional<Confusion> confusion = {};      // for a classifier
  bool was_stopped() const { return tokens == 0; }
  double perplexity() const { return std::exp(nats_per_token); }
  // The share of right predictions of documents or sequences; nullopt without predictions.
  std::optional<double> accuracy() const {
    if (confusion) return confusion->accuracy();
    return predictions ? std::optional(predictions->sequence_accuracy()) : std::nullopt;
  }
  // True if every target is scored. If false, the nats are not for the full text.
  bool of_whole_text() const { return tokens == targets; }

  // Nats per byte or word, comparable between tokenizers. The first token of a text is never predicted, but its bytes and words are
  // included.
  double bits_per_byte(int64_t bytes) const { return nats() / std::log(2.0) / static_cast<double>(bytes); }
  double word_perplexity(int64_t words) const { return std::exp(nats() / static_cast<double>(words)); }

 private:
  double nats() const { return nats_per_token * static_cast<double>(tokens); }
};

// Returns a batch by its index, from 0; is called with the number of finished batches.
using BatchOf = std::function<Batch(int64_t index)>;
using AfterBatch = std::function<void(int64_t done)>;

// Calls batch(0) .. batch(count - 1) once each. Nothing is recorded, dropout is off. Multiple ranks share the batches (batch i belongs to
// rank i mod R), and all get the result of a single process, bit for bit. Once stop() returns true on one rank, all are stopped without a
// result. A classifier is scored by documents, and Evaluation::confusion counts its predictions. Error: no token is scored.
Evaluation evaluate(const Model& model, int64_t count, const BatchOf& batch, const AfterBatch& after_batch = {},
    Ranks& ranks = Ranks::alone(), bool with_predictions = false, bool (*stop)() = nullptr);

// The class probabilities of a classifier, f64 [b k] on the CPU.
Tensor class_probabilities(const Model& model, const Batch& batch);

// -log p(target) in nats for every target of a batch, row by row; NaN for a target of -1. Includes positions that the loss omits
// (model.loss_from). Nothing is recorded, dropout is off. Errors: the model is a classifier or coarse; a target is outside the vocabulary.
std::vector<double> token_nats(const Model& model, const Batch& batch);

// The first scored position of a sequence of `context` tokens.
int64_t first_scored(const Model& model, int64_t context);

// The number of sequences of `context` tokens to compute at a time, 1 .. 32. Their logits have at most 2^25 elements. The logits of a full
// batch would be most of an evaluation's memory.
int64_t rows_at_once(const Model& model, int64_t context);

}  // namespace ricci
