// How many targets a model would predict: those whose logit is the largest, the first of equal ones.
#pragma once
#include <cstdint>
#include <functional>

#include "core/tensor.h"

namespace ricci {

// Calls f for every row of the logits [.. v] whose target is not -1. The prediction is the place of the largest logit.
using OnPrediction = std::function<void(int64_t row, int64_t target, int64_t prediction)>;
void each_prediction(const Tensor& logits, const Tensor& targets, const OnPrediction& f);

struct Predictions {
  int64_t tokens = 0, tokens_right = 0;        // targets of -1 do not count
  int64_t sequences = 0, sequences_right = 0;  // right: all their targets are

  // Counts a batch. Error: shapes that do not fit.
  void add(const Tensor& logits_bcv, const Tensor& targets_bc);
  double token_accuracy() const { return tokens ? static_cast<double>(tokens_right) / static_cast<double>(tokens) : 0; }
  double sequence_accuracy() const { return sequences ? static_cast<double>(sequences_right) / static_cast<double>(sequences) : 0; }
};

}  // namespace ricci
