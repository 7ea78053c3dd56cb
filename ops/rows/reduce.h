#pragma once
#include "autograd/arg.h"

namespace ricci {

// Reduces over all elements to a scalar, shape []. Partial sums are held in f64.
Tensor sum(const Arg& x);
Tensor mean(const Arg& x);  // error: no elements

// Reduces over one index and removes it; -1 is the innermost. Errors: the index does not exist; the extent of a mean is 0.
Tensor sum(const Arg& x, int index);
Tensor mean(const Arg& x, int index);

}  // namespace ricci
