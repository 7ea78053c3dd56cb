#pragma once
#include <vector>

#include "ops/optimizers/optimizer_tensor.h"

namespace ricci {

struct AdamW {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool decoupled = true;  // without it, Adam: weight decay is a part of the gradient
};

// StepNumbers::rates of a step, counted from 1. Error: a step below 1.
Rates rates_of(const AdamW& options, double learning_rate, int64_t step);

// One step of AdamW (Loshchilov and Hutter 2019) in one pass over memory, in PyTorch's order of operations, with grad
// multiplied by now.gradient_scale:
//   value *= 1 - learning_rate weight_decay      or, not decoupled (Adam, Kingma and Ba 2015), grad += weight_decay value
//   m += (1 - beta1) (grad - m),   v = beta2 v + (1 - beta2) grad^2
//   value -= learning_rate / (1 - beta1^step) m / (sqrt(v) / sqrt(1 - beta2^step) + eps)
// The values count as written at the caller's line. A tensor with an empty grad is left alone.
// Errors: shapes, dtypes or devices that do not fit, named by the tensor's place in the list.
void adamw_update(const std::vector<OptimizerTensor>& tensors, const AdamW& options, const StepNumbers& now,
    const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace ricci
