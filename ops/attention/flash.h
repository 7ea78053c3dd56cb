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

// Calls f(FlashChoice<width, dropping>{}) with the problem's.
template <int width, bool dropping> struct FlashChoice {};
template <class F> void with_flash_width(const Problem& problem, F f) {
  const auto with_width = [&]<int width>(FlashChoice<width, false> plain) {
    return problem.dropout.active() ? f(FlashChoice<width, true>{}) : f(plain);
  };
  if (problem.width == 32) return with_width(FlashChoice<32, false>{});
  if (problem.width == 64) return with_width(FlashChoice<64, false>{});
  if (problem.width == 96) return with_width(FlashChoice<96, false>{});
  with_width(FlashChoice<128, false>{});
}

}  // namespace ricci::attention_kernels
