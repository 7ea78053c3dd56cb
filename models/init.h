// How initial weights are drawn: on the CPU, in f64, from a random stream of the parameter's own name, so that a weight
// does not change when another part of the model does.
#pragma once
#include <string_view>

#include "autograd/arg.h"

namespace ricci {

struct Draw {
  uint64_t seed;
  std::string_view path;

  void constant(Parameter& p, double value) const;
  void normal(Parameter& p, double deviation) const;  // mean 0
  void uniform(Parameter& p, double bound) const;     // in [-bound, bound)
};

}  // namespace ricci
