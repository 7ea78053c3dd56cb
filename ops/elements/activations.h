// Functions of a tensor, element by element, of any shape.
#pragma once
#include "autograd/arg.h"

namespace ricci {

// max(x, 0). A NaN stays a NaN.
Tensor relu(const Arg& x);

// 1 / (1 + exp(-x))
Tensor sigmoid(const Arg& x);

// Gaussian error linear unit (Hendrycks and Gimpel 2016).
Tensor gelu(const Arg& x);
// Its approximation in GPT-2's released code, offered for its checkpoints.
Tensor gelu_tanh(const Arg& x);

}  // namespace ricci
