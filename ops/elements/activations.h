// The activation functions, element by element, for tensors of any shape. A run file chooses one by its name, as model.activation.
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

// x sigmoid(x), also called swish with beta = 1 (Hendrycks and Gimpel 2016).
Tensor silu(const Arg& x);

// Gaussian error linear unit (Hendrycks and Gimpel 2016).
Tensor gelu(const Arg& x);
// gelu with tanh instead of erf, as in GPT-2's released code: its checkpoints were trained with it.
Tensor gelu_tanh(const Arg& x);

// The activation functions of a feed-forward layer, by name.
enum class Activation : uint8_t { gelu, gelu_tanh, relu, silu, relu2 };
constexpr auto choices(Activation) { return std::array{"gelu", "gelu_tanh", "relu", "silu", "relu2"}; }
inline Tensor activate(Activation f, const Arg& x) {
  constexpr std::array ops{gelu, gelu_tanh, relu, silu, relu2};
  return ops[static_cast<size_t>(f)](x);
}

}  // namespace ricci
