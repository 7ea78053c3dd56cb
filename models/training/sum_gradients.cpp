#include "models/training/sum_gradients.h"

#include <utility>

#include "cuda/device/device.h"
#include "cuda/trace.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {
namespace {

// The parameters that a gradient of any rank has reached, in order.
std::vector<Parameter*> reached_by_any(const std::vector<Parameter*>& parameters, Ranks& ranks) {
  std::vector<double> reached;
  for (const Parameter* p : parameters) reached.push_back(p->grad ? 1 : 0);
  reached = ranks.sum_numbers(reached);
  std::vector<Parameter*> found;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (reached[i] > 0) found.push_back(parameters[i]);
  return found;
}

// Takes the gradient from a parameter. Nothing else uses its memory, because the tape can give one tensor to two parameters, and the sum
// would be made twice in it.
Tensor take_gradient(const Parameter& p, Dtype dtype) {
  if (!p.grad) return zeros(p.value.shape(), dtype, p.value.device());
  const Tensor gradient = convert(std::exchange(p.grad, {}), dtype);
  if (gradient.unique()) return gradient;
  const Tensor own = like(gradient);
  copy(own, gradient);
  return own;
}

}  // namespace

void sum_gradients(const std::vector<Parameter*>& parameters, const Tensor& loss, Dtype reduce_dtype, Ranks& ranks) {
  const std::vector<Parameter*> reached = reached_by_any(parameters, ranks);
  std::vector<Tensor> sums;
  int64_t bytes = 0;
  for (const Parameter* p : reached) {
    sums.push_back(take_gradient(*p, reduce_dtype == Dtype::bf16 ? reduce_dtype : p->sum_dtype()));
    bytes += sums.back().bytes();
  }
  sums.push_back(loss);
  ranks.sum(sums);
  for (size_t i = 0; i < reached.size(); ++i) reached[i]->grad = convert(sums[i], reached[i]->sum_dtype());
  trace::end("sum of gradients", "", loss.device(), bytes);
}

}  // namespace ricci
