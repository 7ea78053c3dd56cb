#include "models/evaluation/predictions.h"

#include <algorithm>

#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {

void Predictions::add(const Tensor& logits_bcv, const Tensor& targets_bc) {
  const Shape &of_logits = logits_bcv.shape(), &of_targets = targets_bc.shape();
  if (of_logits.rank() != 3 || !(of_targets == Shape{of_logits[0], of_logits[1]}))
    fail("predictions: logits {} and targets {}, expected [batch context vocabulary] and [batch context]", {show(of_logits), show(of_targets)});
  const Tensor logits = to(convert(logits_bcv, Dtype::f64), Device::cpu), targets = to(targets_bc, Device::cpu);
  const int64_t vocab = of_logits[2];
  for (int64_t b = 0; b < of_targets[0]; ++b) {
    bool all_right = true;
    for (int64_t i = b * of_targets[1]; i < (b + 1) * of_targets[1]; ++i) {
      const int64_t target = targets.data<int64_t>()[i];
      if (target == -1) continue;
      const double* const row = logits.data<double>() + i * vocab;
      const bool right = std::max_element(row, row + vocab) - row == target;
      ++tokens, tokens_right += right, all_right &= right;
    }
    ++sequences, sequences_right += all_right;
  }
}

}  // namespace ricci
