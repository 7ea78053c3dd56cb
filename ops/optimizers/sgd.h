#pragma once
#include <vector>

#include "ops/optimizers/optimizers.h"

namespace ricci {

struct Sgd {
  using Config = Sgd;
  static constexpr const char *kName = "sgd", *kFirstMoment = "momentum";
  static constexpr bool kByMatrices = false;
  double momentum = 0.9;
  bool nesterov = false;  // Nesterov's momentum, in the form of Sutskever et al. 2013
  Moments moments() const { return {.m = momentum != 0}; }
};

// The keys of these options in a run file.
template <class Fields> void visit_fields(Sgd& c, const Fields& field) {
  field("momentum", c.momentum, "decay rate of the sum of gradients (0: no momentum)").below_one();
  field("nesterov", c.nesterov, "Nesterov's momentum");
}

// Returns StepNumbers::rates for a step.
inline Rates rates_of(const Sgd&, double learning_rate, int64_t) { return {learning_rate, learning_rate, 1}; }

// One step of stochastic gradient descent in PyTorch's order of operations:
//   g = now.gradient_scale grad + weight_decay value
//   m = momentum m + g,    g = m  or, with nesterov,  g + momentum m      (m is not used if momentum is 0)
//   value -= learning_rate g
// The values are marked as written at the caller's line. A tensor with an empty grad is not changed; v is not used.
// Errors: as for check_tensors; nesterov is used without momentum.
void update_parameters(const std::vector<OptimizerTensor>& tensors, const Sgd& options, const StepNumbers& now,
    const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace ricci
