#pragma once
#include <array>

#include "autograd/arg.h"

namespace ricci {

// y = gain_d * x / sqrt(mean of x^2 + eps) over the innermost index; x_rd is [... d]. (Zhang and Sennrich 2019.)
// A row is NaN if the mean of its squares overflows.
// Errors: the gain has the wrong width, inputs differ in dtype or device.
Tensor rms_norm(const Arg& x_rd, const Arg& gain_d, double eps = 1e-5);

// {s, rms_norm(s)} with s = x + branch, in one pass over memory, as residual_layer_norm does.
// Errors: as for rms_norm; the shapes of x and branch differ.
std::array<Tensor, 2> residual_rms_norm(const Arg& x_rd, const Arg& branch_rd, const Arg& gain_d, double eps = 1e-5);

}  // namespace ricci
