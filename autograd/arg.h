// The argument of a public op: a tensor, and the source line that passed it. Tensors and parameters convert to Args implicitly, so every
// op, operators included, can name its caller. Without that line, an error in a backward function could only name the call of backward().
#pragma once
#include "autograd/parameter.h"
#include "core/tensor.h"

namespace ricci {

struct Arg : Tensor {
  Arg(const Tensor& t, CallSite where = {}) : Tensor(t), site(where) {}
  Arg(const Parameter& p, CallSite where = {});  // while a tape records, the parameter gets a slot on it, unless it is frozen
  CallSite site;
};

}  // namespace ricci
