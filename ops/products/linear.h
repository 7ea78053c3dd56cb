#pragma once
#include "autograd/arg.h"

namespace ricci {

// y = x W^T + bias over the innermost index: x is [... d], w_fd is stored (out, in), y is [... f]. An empty bias_f is none.
// Errors: widths that disagree, factors of different dtype or on different devices, an x without indices.
Tensor linear(const Arg& x, const Arg& w_fd, const Arg& bias_f);

}  // namespace ricci
