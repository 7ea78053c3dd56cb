#pragma once
#include "autograd/arg.h"

namespace ricci {

// y = x W^T + bias over the innermost index: x_rd is [... d], w_fd is stored (out, in), y is [... f]. An empty bias_f is none.
// Errors: widths that disagree, inputs that differ in dtype or device, an x_rd without indices.
Tensor linear(const Arg& x_rd, const Arg& w_fd, const Arg& bias_f);

}  // namespace ricci
