#pragma once
#include <array>

#include "autograd/arg.h"

namespace ricci {

// y = gain_d * (x - mean) / sqrt(variance + eps) + bias_d over the innermost index; x is [... d]. An empty bias_d is none.
// (Ba et al. 2016.) Errors: gain or bias of another width.
Tensor layer_norm(const Arg& x, const Arg& gain_d, const Arg& bias_d, double eps = 1e-5);

// {s, layer_norm(s)} with s = x + branch, in one pass over memory: the residual stream and the next block's input.
std::array<Tensor, 2> residual_layer_norm(const Arg& x, const Arg& branch, const Arg& gain_d, const Arg& bias_d, double eps = 1e-5);

}  // namespace ricci
