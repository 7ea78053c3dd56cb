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
// Its value, and dx = dy gelu_tanh'(x), for ops that contain it and keep x. Neither is recorded.
Tensor gelu_tanh_value(const Tensor& x);
Tensor gelu_tanh_backward(const Tensor& dy, const Tensor& x);

}  // namespace ricci
