// Flash attention in bf16 on tensor cores, for head widths 32, 64, 96 and 128; other widths go to wide/. In reading order:
// tile.h (products of tiles in shared memory), mask.h (what is visible, what dropout keeps, the work of each thread block), launch.h,
// softmax.h, forward.cu, backward.h and backward.cu, key_gradient.cu, query_gradient.cu; then wgmma/ with panels.h and the same kernels
// on wgmma.
#pragma once
#include "ops/attention/kernels.h"

namespace ricci::attention_kernels {

// The shared memory that the most demanding of the kernels needs per thread block. Width 128 is too much for GPUs of compute
// capability 8.6, 8.9 and 12.0, which have 99 KiB.
constexpr int flash_shared_bytes(int64_t width) { return static_cast<int>(1024 * width) + 1024; }

// True where the kernels below can do it, whatever the views: one of the widths, positions within 32 bits, enough shared memory.
bool flash_takes(const Problem& problem, Device device);
// True where the kernels below can do it: bf16, one of the widths, positions within 32 bits, every row of every view on 16
// bytes, and enough shared memory. Rows are loaded and stored 16 bytes at a time.
bool flash_fits(const Problem& problem, const std::vector<Rows>& views);

// As forward_gpu and backward_gpu, of problems that fit.
void flash_forward(const Problem& problem, const Views& inputs, const Outputs& out);
// True where they take the kernels in wgmma/: widths 64 and 128 on a GPU with wgmma, whose blocks have 227 KiB of shared memory.
bool wgmma_takes(const Problem& problem, Device device);
void wgmma_forward(const Problem& problem, const Views& inputs, const Outputs& out);
void flash_backward(const Problem& problem, const Tensor& dy, const Views& inputs, const Outputs& out, const Views& gradients);

}  // namespace ricci::attention_kernels
