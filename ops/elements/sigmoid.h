#pragma once
#include "autograd/arg.h"

namespace ricci {

// 1 / (1 + exp(-x)), element by element, any shape.
Tensor sigmoid(const Arg& x);

}  // namespace ricci
