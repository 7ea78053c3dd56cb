// The loss and the gradients of a step without its update.
#pragma once
#include "cuda/verbs/arithmetic.h"
#include "models/training/train_step.h"

namespace ricci {

inline double forward_backward(const Model& model, const std::vector<MicroBatch>& micro_batches, int64_t step = 0, uint64_t seed = 1) {
  const auto inputs = weigh(model, micro_batches, micro_batches[0].inputs.ids_bc.device());
  return item(forward_backward(model, inputs, RandomState{seed, static_cast<uint64_t>(step) << 32, 0}));
}

}  // namespace ricci
