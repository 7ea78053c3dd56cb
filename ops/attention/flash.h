// Flash attention in bf16 on tensor cores, for head widths 32, 64, 96 and 128; other problems go to forward.cu, backward.cu.
#pragma once
#include <initializer_list>

#include "ops/attention/kernels.h"

namespace ricci::attention_kernels {

// Whether the kernels below can do it: bf16, one of the widths, positions within 32 bits, and every tensor on 16 bytes.
bool flash_fits(const Problem& problem, std::initializer_list<const Tensor*> tensors);

// As forward_gpu and backward_gpu, of problems that fit.
void flash_forward(const Problem& problem, const Tensor& qkv, const Tensor& y, const Tensor& lse_bnc);
void flash_backward(const Problem& problem, const Tensor& dy, const Tensor& qkv, const Tensor& y, const Tensor& lse_bnc,
                    const Tensor& dqkv);

}  // namespace ricci::attention_kernels
