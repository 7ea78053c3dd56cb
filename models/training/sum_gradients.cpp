#include "models/training/sum_gradients.h"

#include <utility>

#include "cuda/device/device.h"
#include "cuda/trace.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {
namespace {

// Removes and returns a parameter's gradient, or zeros if it has none, as a tensor with unshared memory. The tape can give one tensor to
// two parameters, and the ranks would then sum it twice.
Tensor take_gradient(const Parameter& p, Dtype dtype) {
  if (!p.grad) return zeros(p.value.shape(), dtype, p.value.device());
  const Tensor gradient = convert(std::exchange(p.grad, {}), dtype);
  if (!gradient.storage()->is_shared()) return gradient;
  const Tensor own = like(gradient);
  copy(own, gradient);
  return own;
}

}  // namespace

void sum_gradients(const std::vector<Parameter*>& parameters, const Tensor& loss, Dtype reduce_dtype, Ranks& ranks) {
  if (ranks.count() == 1) return;
  std::vector<double> reached;  // for each parameter, the number of ranks with a gradient
  for (const Parameter* p : parameters) reached.push_back(p->grad ? 1 : 0);
  reached = ranks.sum_numbers(reached);
  std::vector<Parameter*> summed;
  std::vector<Tensor> sums;
  int64_t bytes = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    Parameter* const p = parameters[i];
    if (reached[i] == 0) continue;
    summed.push_back(p);
    sums.push_back(take_gradient(*p, reduce_dtype == Dtype::bf16 ? reduce_dtype : p->sum_dtype()));
    bytes += sums.back().bytes();
  }
  sums.push_back(loss);
  ranks.sum(sums);
  for (size_t i = 0; i < summed.size(); ++i) summed[i]->grad = convert(sums[i], summed[i]->sum_dtype());
  trace::end("sum of gradients", "", loss.device(), bytes);
}

}  // namespace ricci
