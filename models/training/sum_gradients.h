#pragma once
#include <vector>

#include "autograd/parameter.h"
#include "cuda/ranks/ranks.h"

namespace ricci {

// Data parallelism: each rank comes with the loss and the gradients of its own micro-batches, and leaves with their sums over all ranks,
// with the same bits on every rank. All of them are one sum, because each message waits for the slowest rank. The gradients are added up
// where they are: packing them into one tensor took 5% of a step of GPT-2 124M on two ranks, and doubled the memory of gradients.
// reduce_dtype: bf16 sends half the bytes, but rounds each gradient to 8 bits before it is added; f32 is the dtype that a gradient has (f64
// for an f64 parameter). A parameter that no rank's micro-batches reached has no gradient afterwards; if some ranks' did, the others add
// zeros. Error: what the ranks report.
void sum_gradients(const std::vector<Parameter*>& parameters, const Tensor& loss, Dtype reduce_dtype, Ranks& ranks);

}  // namespace ricci
