// The argument of a public op: a tensor, and the place in the source that passed it. Made implicitly, so that every op,
// operators included, can name its caller when its backward finds something wrong.
#pragma once
#include "autograd/parameter.h"
#include "core/tensor.h"

namespace ricci {

struct Arg : Tensor {
  Arg(const Tensor& t, CallSite where = {}) : Tensor(t), site(where) {}
  // While a tape records: a leaf on it, unless the parameter is frozen.
  Arg(const Parameter& p, CallSite where = {});
  CallSite site;
};

}  // namespace ricci
