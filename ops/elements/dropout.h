#pragma once
#include "autograd/arg.h"

namespace ricci {

// Each element is set to 0 with probability p, else multiplied by 1/(1-p) (Srivastava et al. 2014). Element i stays if word i of
// Philox{seed, stream} (core/philox.h) is at least 2^32 p; in micro-batch k of a batch (RandomState::micro_batch), this is word
// k * size + i. So the mask does not depend on the device or the number of threads. Every call uses one stream. Error: p is outside [0, 1).
Tensor dropout(const Arg& x, double p);

}  // namespace ricci
