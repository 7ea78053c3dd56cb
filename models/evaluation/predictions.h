// The targets that a model would predict: those whose logit is the largest, the first of equal ones.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {

// f(row, target, prediction) for every row of the logits [.. v] whose target is not -1. The prediction is the index of the largest logit.
template <class F> void each_prediction(const Tensor& logits, const Tensor& targets, const F& f) {
  const Tensor wide = to(convert(logits, Dtype::f64), Device::cpu), host = to(targets, Device::cpu);
  const int64_t columns = logits.shape()[-1];
  for (int64_t r = 0; r < host.size(); ++r) {
    const int64_t target = host.data<int64_t>()[r];
    if (target == -1) continue;
    const double* const row = wide.data<double>() + r * columns;
    f(r, target, std::max_element(row, row + columns) - row);
  }
}

struct Predictions {
  int64_t tokens = 0, tokens_right = 0;        // targets of -1 do not count
  int64_t sequences = 0, sequences_right = 0;  // right: all their targets are

  // Counts a batch. Error: shapes that do not fit.
  void add(const Tensor& logits_bcv, const Tensor& targets_bc) {
    const Shape &logits = logits_bcv.shape(), &targets = targets_bc.shape();
    if (logits.rank() != 3 || !(targets == Shape{logits[0], logits[1]}))
      fail("predictions: logits {} and targets {}, expected [batch context vocabulary] and [batch context]", {show(logits), show(targets)});
    std::vector<bool> right(static_cast<size_t>(targets[0]), true);  // all targets of the sequence
    each_prediction(logits_bcv, targets_bc, [&](int64_t row, int64_t target, int64_t prediction) {
      ++tokens;
      tokens_right += prediction == target;
      if (prediction != target) right[static_cast<size_t>(row / targets[1])] = false;
    });
    sequences += targets[0];
    sequences_right += std::count(right.begin(), right.end(), true);
  }
  double token_accuracy() const { return tokens ? static_cast<double>(tokens_right) / static_cast<double>(tokens) : 0; }
  double sequence_accuracy() const { return sequences ? static_cast<double>(sequences_right) / static_cast<double>(sequences) : 0; }
};

}  // namespace ricci
