#pragma once
#include "autograd/arg.h"

namespace ricci {

// Gaussian error linear unit, element by element, any shape (Hendrycks and Gimpel 2016).
Tensor gelu(const Arg& x);
// The approximation of GPT-2's released code, offered for its checkpoints.
Tensor gelu_tanh(const Arg& x);

}  // namespace ricci
