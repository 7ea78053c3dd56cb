#pragma once
#include "autograd/arg.h"

namespace ricci {

// exp(x) / sum exp(x) over the innermost index; x is [... c]. Error: x has no index.
Tensor softmax(const Arg& x);

}  // namespace ricci
