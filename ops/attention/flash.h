// Flash attention in bf16 on tensor cores, for head widths 32, 64, 96 and 128; other problems go to forward.cu, backward.cu.
#pragma once
#include <initializer_list>

#include "ops/attention/kernels.h"

namespace ricci::attention_kernels {

// Of shared memory, what the most demanding of the kernels needs per thread block. Width 128 is too much for GPUs of compute
// capability 8.6, 8.9 and 12.0, which have 99 KiB.
constexpr int flash_shared_bytes(int64_t width) { return static_cast<int>(1024 * width) + 1024; }

// Whether the kernels below can do it: bf16, one of the widths, positions within 32 bits, every tensor on 16 bytes, and enough
// shared memory.
bool flash_fits(const Problem& problem, std::initializer_list<const Tensor*> tensors);

// As forward_gpu and backward_gpu, of problems that fit.
void flash_forward(const Problem& problem, const Tensor& qkv, const Tensor& y, const Tensor& lse_bnc);
void flash_backward(const Problem& problem, const Tensor& dy, const Tensor& qkv, const Tensor& y, const Tensor& lse_bnc,
                    const Tensor& dqkv);

}  // namespace ricci::attention_kernels
