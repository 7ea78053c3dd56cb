#include "autograd/gradient_sum.h"

#include <utility>

#include "cuda/verbs/arithmetic.h"

namespace ricci {

GradientSum::GradientSum(std::vector<Parameter*> parameters) : parameters_(std::move(parameters)) {
  std::erase_if(parameters_, [](const Parameter* p) { return p->value.dtype() != Dtype::bf16; });
  sums_.resize(parameters_.size());
}

void GradientSum::take() {
  for (size_t i = 0; i < sums_.size(); ++i) {
    Tensor& grad = parameters_[i]->grad;
    if (!grad) continue;
    if (sums_[i])
      add_to(sums_[i], grad);
    else
      sums_[i] = convert(grad, Dtype::f32);
    grad = {};
  }
}

void GradientSum::give() {
  for (size_t i = 0; i < sums_.size(); ++i) {
    if (sums_[i]) parameters_[i]->grad = convert(sums_[i], Dtype::bf16);
    sums_[i] = {};
  }
}

void GradientSum::each_held(const Visit& visit) const {
  for (const Tensor& sum : sums_) visit(sum, HeldFor::gradients);
}

}  // namespace ricci
