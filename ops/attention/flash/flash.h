// Flash attention in bf16 on tensor cores, for head widths 32, 64, 96 and 128: its functions and launches on the host. In reading order:
// tile.h (products of tiles in shared memory), mask.h (visibility, dropout, the work of each thread block), softmax.h, forward.cu,
// backward.h and backward.cu, key_gradient.cu, query_gradient.cu, padded.cpp (other widths); then wgmma/, the same kernels on larger
// products.
#pragma once
#include "cuda/launch.h"
#include "cuda/verbs/pieces.h"
#include "ops/attention/kernels.h"

namespace ricci::attention_kernels {

// The most shared memory that a thread block needs. Width 128 needs more than the 99 KiB of GPUs of compute capability 8.6, 8.9 and 12.0.
constexpr int flash_shared_bytes(int64_t width) { return static_cast<int>(1024 * width) + 1024; }

// True if the kernels support the problem: its head width is 32, 64, 96 or 128, positions fit into 32 bits, and shared memory suffices.
bool flash_takes(const Problem& problem, Device device);
// True if flash_takes is true and the slices are bf16, with every row at a multiple of 16 bytes, the unit of loads and stores.
bool flash_fits(const Problem& problem, const std::vector<ColumnSlice>& slices);
// True if flash supports the problem with padded heads. The added zeros change no score and no output.
bool padding_fits(const Problem& problem, Device device);
// True for widths 64 and 128 on a GPU with wgmma (227 KiB of shared memory for a thread block): flash_forward then calls wgmma_forward.
bool wgmma_takes(const Problem& problem, Device device);
Forward wgmma_forward;

namespace flash {

// Launches a Kernel<width, dropping, keys_are_values>{arguments...} for the width of the problem's heads, one of `widths`, with
// kernel.blocks() thread blocks for each head.
template <template <int, bool, bool> class Kernel, int... widths, class... Arguments>
void launch_flash(const char* name, Device device, const Problem& problem, bool keys_are_values, const Arguments&... arguments) {
  const auto run = [&](const auto& kernel) {
    launch(name, device, {problem.batches * problem.heads * kernel.blocks(), kernel.kThreads, kernel.kBytes}, kernel);
  };
  with_constant<widths...>(problem.width, [&]<int width>() {
    if (problem.dropout.active() && keys_are_values) return run(Kernel<width, true, true>{arguments...});
    if (problem.dropout.active()) return run(Kernel<width, true, false>{arguments...});
    if (keys_are_values) return run(Kernel<width, false, true>{arguments...});
    run(Kernel<width, false, false>{arguments...});
  });
}

}  // namespace flash

#define CUDA_FLASH_OF_WIDTH(Kernel, width)  \
  CUDA_KERNEL(Kernel<width, false, false>); \
  CUDA_KERNEL(Kernel<width, false, true>);  \
  CUDA_KERNEL(Kernel<width, true, false>);  \
  CUDA_KERNEL(Kernel<width, true, true>)
#define CUDA_FLASH(Kernel)         \
  CUDA_FLASH_OF_WIDTH(Kernel, 32); \
  CUDA_FLASH_OF_WIDTH(Kernel, 64); \
  CUDA_FLASH_OF_WIDTH(Kernel, 96); \
  CUDA_FLASH_OF_WIDTH(Kernel, 128)
#define CUDA_WGMMA(Kernel)         \
  CUDA_FLASH_OF_WIDTH(Kernel, 64); \
  CUDA_FLASH_OF_WIDTH(Kernel, 128)

}  // namespace ricci::attention_kernels
