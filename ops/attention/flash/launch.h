// Launches of the flash attention kernels: each is compiled for every head width (those on wgmma for 64 and 128), with and without
// dropout, and for keys that are values and keys that are not.
#pragma once
#include "cuda/launch.h"
#include "cuda/verbs/lanes.h"
#include "ops/attention/problem.h"

namespace ricci::attention_kernels::flash {

// Launches a Kernel<width, dropping, keys_are_values>{arguments...} for the width of the problem's heads, which is one of `widths`, with
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

}  // namespace ricci::attention_kernels::flash
