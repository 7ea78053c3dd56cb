#include "models/evaluation/predictions.h"

#include <algorithm>
#include <vector>

#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {

void each_prediction(const Tensor& logits, const Tensor& targets, const OnPrediction& f) {
  const Tensor wide = to(convert(logits, Dtype::f64), Device::cpu), host = to(targets, Device::cpu);
  const int64_t columns = logits.shape()[-1];
  for (int64_t r = 0; r < host.size(); ++r) {
    const int64_t target = host.data<int64_t>()[r];
    if (target == -1) continue;
    const double* const row = wide.data<double>() + r * columns;
    f(r, target, std::max_element(row, row + columns) - row);
  }
}

void Predictions::add(const Tensor& logits_bcv, const Tensor& targets_bc) {
  const Shape &logits_shape = logits_bcv.shape(), &targets_shape = targets_bc.shape();
  if (logits_shape.rank() != 3 || !(targets_shape == Shape{logits_shape[0], logits_shape[1]}))
    fail("predictions: logits {} and targets {}, expected [batch context vocabulary] and [batch context]",
        {show(logits_shape), show(targets_shape)});
  std::vector<bool> right(static_cast<size_t>(targets_shape[0]), true);  // all targets of the sequence
  each_prediction(logits_bcv, targets_bc, [&](int64_t row, int64_t target, int64_t prediction) {
    ++tokens;
    tokens_right += prediction == target;
    if (prediction != target) right[static_cast<size_t>(row / targets_shape[1])] = false;
  });
  sequences += targets_shape[0];
  sequences_right += std::count(right.begin(), right.end(), true);
}

}  // namespace ricci
