// Attention in bf16 on tensor cores for the heads that flash/ has no kernel for.
#pragma once
#include "ops/attention/kernels.h"

namespace ricci::attention_kernels {

// Heads of up to 128 columns: q, k, v and what follows from them are copied into tensors whose heads have the next width of flash/, zeros
// in the further columns, which change no score and no output. Also for views that do not begin at a multiple of 16 bytes.
bool padding_fits(const Problem& problem, Device device);
void padded_forward(const Problem& problem, const Views& inputs, const Outputs& out);
void padded_backward(const Problem& problem, const Tensor& dy, const Views& inputs, const Outputs& out, const Views& gradients);

// Heads of any width: the scores of some sequences at a time are in memory, as f32, and their weights, as bf16.
bool products_fit(const Problem& problem);
void products_forward(const Problem& problem, const Views& inputs, const Outputs& out);
void products_backward(const Problem& problem, const Tensor& dy, const Views& inputs, const Outputs& out, const Views& gradients);

}  // namespace ricci::attention_kernels
