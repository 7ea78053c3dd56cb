#pragma once
#include "autograd/arg.h"

namespace ricci {

// max(x, 0), element by element, any shape. A NaN stays a NaN.
Tensor relu(const Arg& x);

}  // namespace ricci
