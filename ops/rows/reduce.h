#pragma once
#include "autograd/arg.h"

namespace ricci {

// Over every element: a scalar, shape []. Partial sums are held in f64.
Tensor sum(const Arg& x);
Tensor mean(const Arg& x);  // error: no elements

// Over one index, and the result lacks it; -1 is the innermost. Errors: an index that does not exist; the mean over an extent of 0.
Tensor sum(const Arg& x, int index);
Tensor mean(const Arg& x, int index);

}  // namespace ricci
