// What a classifier predicted for sequences of each class, counted, and the scores that follow from it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace ricci {

// Precision: the part of the sequences predicted as a class that are of it. Recall: the part of the sequences of a class that are
// predicted as it. F1: 2 p r / (p + r). Each is 0 where it would be 0 / 0.
struct ClassScores {
  double precision = 0, recall = 0, f1 = 0;
};

class Confusion {
 public:
  // Error: fewer than two classes.
  explicit Confusion(int64_t classes);

  // Counts one sequence. Error: no such class.
  void add(int64_t target, int64_t predicted);
  // Counts a batch, whose predictions are the largest logits, the first of equal ones. Targets of -1 do not count.
  // Errors: shapes that do not fit, a target that is no class.
  void add(const Tensor& logits_bk, const Tensor& targets_b);

  int64_t classes() const { return classes_; }
  int64_t total() const;
  int64_t count(int64_t target, int64_t predicted) const { return counts_[static_cast<size_t>(target * classes_ + predicted)]; }

  double accuracy() const;  // 0 of no sequence
  ClassScores scores(int64_t of_class) const;
  // The means over the classes that occur among targets or predictions.
  ClassScores macro() const;

 private:
  int64_t targets_of(int64_t of_class) const;
  int64_t predictions_of(int64_t of_class) const;

  int64_t classes_;
  std::vector<int64_t> counts_;  // a row per target
};

}  // namespace ricci
