#pragma once
#include "autograd/arg.h"

namespace ricci {

// Each element is zeroed with probability p and otherwise multiplied by 1/(1-p) (Srivastava et al. 2014). Whether element
// i goes is a function of the seed and stream of autograd/random.h and of i alone: element i stays when word i of
// Philox{seed, stream} is at least 2^32 p; in micro-batch k of a batch (RandomState::micro_batch), word k size + i. Every call
// takes one stream. Error: p outside [0, 1).
Tensor dropout(const Arg& x, double p);

}  // namespace ricci
