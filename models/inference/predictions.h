// Predictions against targets: what a model would predict is the target with the largest logit, the first of equal ones.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "cuda/ranks/ranks.h"

namespace ricci {

struct Predictions {
  int64_t tokens = 0, tokens_right = 0;        // targets of -1 do not count
  int64_t sequences = 0, sequences_right = 0;  // right: all their targets are

  // Counts a batch. Error: shapes that do not fit.
  void add(const Tensor& logits_bcv, const Tensor& targets_bc);
  void add_other_ranks(Ranks& ranks);  // what the other ranks counted of other batches
  double token_accuracy() const;       // 0 of no token
  double sequence_accuracy() const;    // 0 of no sequence
};

// Precision: the part of the sequences predicted as a class that are of it. Recall: the part of the sequences of a class that are
// predicted as it. F1: 2 p r / (p + r). Each is 0 where it would be 0 / 0.
struct ClassScores {
  double precision = 0, recall = 0, f1 = 0;
};

// The predictions of a classifier for sequences of each class, counted.
class Confusion {
 public:
  // Error: fewer than two classes.
  explicit Confusion(int64_t classes);

  // Counts one sequence. Error: no such class.
  void add(int64_t target, int64_t predicted);
  // Counts a batch; targets of -1 do not count. Errors: shapes that do not fit, a target that is no class.
  void add(const Tensor& logits_bk, const Tensor& targets_b);
  void add_other_ranks(Ranks& ranks);  // what the other ranks counted of other batches

  int64_t classes() const { return classes_; }
  int64_t total() const;
  int64_t count(int64_t target, int64_t predicted) const { return counts_[static_cast<size_t>(target * classes_ + predicted)]; }

  double accuracy() const;  // 0 of no sequence
  ClassScores scores(int64_t of_class) const;
  // The means over the classes that occur among targets or predictions.
  ClassScores macro() const;

 private:
  std::pair<int64_t, int64_t> sums(int64_t of_class) const;  // targets and predictions of the class

  int64_t classes_;
  std::vector<int64_t> counts_;  // a row per target
};

}  // namespace ricci
