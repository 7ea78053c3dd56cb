// AdamW over the parameters of a model (Loshchilov and Hutter 2019). Weight decay by role: matrices and tables decay,
// biases and the gains of norms do not.
#pragma once
#include <vector>

#include "autograd/arg.h"
#include "cuda/device.h"
#include "ops/adamw.h"
#include "ops/gradient_norm.h"

namespace ricci {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
};

class AdamW {
 public:
  // The parameters must outlive the optimizer. The moments start at zero.
  AdamW(std::vector<Parameter*> parameters, const AdamWOptions& options) : parameters_(std::move(parameters)), options_(options) {
    for (const Parameter* p : parameters_) {
      const Dtype moments = p->value.dtype() == Dtype::f64 ? Dtype::f64 : Dtype::f32;
      const Shape& shape = p->value.shape();
      tensors_.push_back({p->value, {}, zeros(shape, moments, p->value.device()), zeros(shape, moments, p->value.device()), {},
                          shape.rank() >= 2 ? options.weight_decay : 0});
    }
  }

  // The Euclidean norm of all gradients together.
  double gradient_norm() const {
    std::vector<Tensor> gradients;
    for (const Parameter* p : parameters_) gradients.push_back(p->grad);
    return ricci::gradient_norm(gradients);
  }

  // One update with every gradient multiplied by gradient_scale; then the gradients are cleared.
  void step(double learning_rate, double gradient_scale = 1) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      tensors_[i].grad = parameters_[i]->grad.detached();
      parameters_[i]->grad = {};
    }
    adamw_update(tensors_, {learning_rate, options_.beta1, options_.beta2, options_.eps, ++steps_, gradient_scale});
    for (AdamWTensor& t : tensors_) t.grad = {};
  }

 private:
  std::vector<Parameter*> parameters_;
  AdamWOptions options_;
  std::vector<AdamWTensor> tensors_;
  int64_t steps_ = 0;
};

}  // namespace ricci
