// The loss and the gradients of a step without its update.
#pragma once
#include "cuda/verbs/arithmetic.h"
#include "models/training/train_step.h"

namespace ricci {

inline double forward_backward(const Model& model, const std::vector<Batch>& micro_batches, int64_t step = 0, uint64_t seed = 1) {
  const std::vector<Tensor> weights = weigh(model, micro_batches, micro_batches[0].ids_bc.device());
  return item(forward_backward(model, micro_batches, weights, RandomState{seed, static_cast<uint64_t>(step) << 32, 0}));
}

}  // namespace ricci
