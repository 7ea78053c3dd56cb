#pragma once
#include <vector>

#include "ops/optimizers/optimizer_tensor.h"

namespace ricci {

struct Sgd {
  double momentum = 0;
  bool nesterov = false;  // Nesterov's momentum, in the form of Sutskever et al. 2013
};

// StepNumbers::rates of a step.
inline Rates rates_of(const Sgd&, double learning_rate) { return {learning_rate, learning_rate, 1}; }

// One step of stochastic gradient descent in one pass over memory, in PyTorch's order of operations:
//   g = now.gradient_scale grad + weight_decay value
//   m = momentum m + g,    g = m  or, with nesterov,  g + momentum m      (no m is read or written when momentum is 0)
//   value -= learning_rate g
// The values count as written at the caller's line. A tensor with an empty grad is left alone; v is not used.
// Errors: shapes, dtypes or devices that do not fit, named by the tensor's place in the list; nesterov without momentum.
void sgd_update(const std::vector<OptimizerTensor>& tensors, const Sgd& options, const StepNumbers& now,
    const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace ricci
