#pragma once
#include <vector>

#include "core/tensor.h"

namespace ricci {

// One parameter and its state. grad has the dtype of value; m and v are f64 when value is, f32 otherwise.
struct AdamWTensor {
  Tensor value, grad, m, v;
  Tensor master;  // f32, only beside a bf16 value: the weights that are updated, value being their rounding; may be empty
  double weight_decay = 0;
};

struct AdamWStep {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  int64_t step = 1;           // counts from 1
  double gradient_scale = 1;  // every gradient is multiplied by it: gradient clipping
};

// One step of AdamW (Loshchilov and Hutter 2019) in one pass over memory, in PyTorch's order of operations:
//   value *= 1 - learning_rate weight_decay
//   m += (1 - beta1) (grad - m),   v = beta2 v + (1 - beta2) grad^2
//   value -= learning_rate / (1 - beta1^step) m / (sqrt(v) / sqrt(1 - beta2^step) + eps)
// The values count as written at the caller's line. A tensor with an empty grad is left alone.
// Errors: shapes, dtypes or devices that do not fit, named by the tensor's place in the list; a step below 1.
void adamw_update(const std::vector<AdamWTensor>& tensors, const AdamWStep& step, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE());

}  // namespace ricci
