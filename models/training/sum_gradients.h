// Data parallelism: each rank computes its own micro-batches, and this sums the loss and the gradients over all ranks, with the same bits
// on every rank. Each message waits for the slowest rank, so it is one sum. The gradients are summed in their own memory. Packing them into
// one tensor took 5% of a step of GPT-2 124M on two ranks, and doubled the gradient memory.
#pragma once
#include <vector>

#include "autograd/parameter.h"
#include "cuda/ranks/ranks.h"

namespace ricci {

// reduce_dtype: bf16 halves the bytes sent, but rounds each gradient to 8 bits before the sum; f32 keeps the dtype of each gradient. A
// parameter without a gradient on every rank keeps none; a rank without one adds zeros to the others. One rank: does nothing.
void sum_gradients(const std::vector<Parameter*>& parameters, const Tensor& loss, Dtype reduce_dtype, Ranks& ranks);

}  // namespace ricci
