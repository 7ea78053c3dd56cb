#pragma once
#include <vector>

#include "ops/optimizers/optimizers.h"

namespace ricci {

struct AdamW {
  using Config = AdamW;
  static constexpr const char *kName = "adamw", *kFirstMoment = "m";
  static constexpr bool kByMatrices = false;
  double beta1 = 0.9, beta2 = 0.99, eps = 1e-8;  // nanoGPT's beta2; PyTorch's default is 0.999
  bool decoupled = true;                         // false for Adam: weight decay is added to the gradient
  Moments moments() const { return {.m = true, .v = true}; }
};

struct Adam : AdamW {
  using Config = Adam;
  static constexpr const char* kName = "adam";
  Adam() { decoupled = false; }
};

// The keys of these options in a run file. This is a template, so kernels need not include core/fields.h.
template <class Fields> void visit_fields(AdamW& c, const Fields& field) {
  field("beta1", c.beta1, "decay rate of the mean gradient").below_one();
  field("beta2", c.beta2, "decay rate of the mean squared gradient").below_one();
  field("eps", c.eps, "added to the square root of the mean squared gradient").positive();
}

// Returns StepNumbers::rates for a step; steps are counted from 1. Error: the step is below 1.
Rates rates_of(const AdamW& options, double learning_rate, int64_t step);

// One step of AdamW (Loshchilov and Hutter 2019) in PyTorch's order of operations, with grad multiplied by now.gradient_scale:
//   value *= 1 - learning_rate weight_decay      or, if not decoupled (Adam, Kingma and Ba 2015), grad += weight_decay value
//   m += (1 - beta1) (grad - m),   v = beta2 v + (1 - beta2) grad^2
//   value -= learning_rate m_hat / (sqrt(v_hat) + eps),   m_hat = m / (1 - beta1^step),   v_hat = v / (1 - beta2^step)
// The values are marked as written at the caller's line. A tensor with an empty grad is not changed. Errors: as for check_tensors.
void update_parameters(const std::vector<OptimizerTensor>& tensors, const AdamW& options, const StepNumbers& now,
    const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace ricci
