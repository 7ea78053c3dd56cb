// Functions of a tensor, element by element, of any shape.
#pragma once
#include <array>

#include "autograd/arg.h"

namespace ricci {

// max(x, 0). A NaN stays a NaN.
Tensor relu(const Arg& x);

// relu(x)^2 (So et al. 2021). A NaN stays a NaN.
Tensor relu2(const Arg& x);

// 1 / (1 + exp(-x))
Tensor sigmoid(const Arg& x);

// x sigmoid(x), also called swish with beta 1 (Hendrycks and Gimpel 2016).
Tensor silu(const Arg& x);

// Gaussian error linear unit (Hendrycks and Gimpel 2016).
Tensor gelu(const Arg& x);
// Its approximation in GPT-2's released code, offered for its checkpoints.
Tensor gelu_tanh(const Arg& x);
// Its value, and dx = dy gelu_tanh'(x), for ops that contain it and keep x. Neither is recorded.
Tensor gelu_tanh_value(const Tensor& x);
Tensor gelu_tanh_backward(const Tensor& dy, const Tensor& x);

// The activation functions of a feed-forward layer, by name.
enum class Activation : uint8_t { gelu, gelu_tanh, relu, silu, relu2 };
constexpr auto choices(Activation) { return std::array{"gelu", "gelu_tanh", "relu", "silu", "relu2"}; }
inline Tensor activate(Activation f, const Arg& x) {
  constexpr std::array ops{gelu, gelu_tanh, relu, silu, relu2};
  return ops[static_cast<size_t>(f)](x);
}

}  // namespace ricci
