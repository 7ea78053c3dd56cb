#pragma once
#include "autograd/arg.h"

namespace ricci {

// Over every element: a scalar, shape []. Partial sums are held in f64.
Tensor sum(const Arg& x);
Tensor mean(const Arg& x);  // error: no elements

// Over one index, removed from the result; -1 is the innermost. Errors: the index does not exist; a mean over an extent of 0.
Tensor sum(const Arg& x, int index);
Tensor mean(const Arg& x, int index);

}  // namespace ricci
