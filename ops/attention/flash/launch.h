// Launches of the flash attention kernels: each is compiled for every head width, with and without dropout, and for keys that
// are values and keys that are not.
#pragma once
#include "cuda/launch.h"
#include "ops/attention/problem.h"

namespace ricci::attention_kernels::flash {

// Calls f(Width<width>{}) with the width of the problem's heads.
template <int width> struct Width {};
template <class F> void with_width(const Problem& problem, F f) {
  if (problem.width == 32) return f(Width<32>{});
  if (problem.width == 64) return f(Width<64>{});
  if (problem.width == 96) return f(Width<96>{});
  f(Width<128>{});
}

// Launches a Kernel<width, dropping, keys_are_values>{arguments...} with kernel.blocks() thread blocks for each head.
template <template <int, bool, bool> class Kernel, int width, class... Arguments>
void launch_width(const char* name, Device device, const Problem& problem, bool keys_are_values, const Arguments&... arguments) {
  const auto run = [&](const auto& kernel) {
    launch(name, device, {problem.batches * problem.heads * kernel.blocks(), kernel.kThreads, kernel.kBytes}, kernel);
  };
  if (problem.dropout.active() && keys_are_values) return run(Kernel<width, true, true>{arguments...});
  if (problem.dropout.active()) return run(Kernel<width, true, false>{arguments...});
  if (keys_are_values) return run(Kernel<width, false, true>{arguments...});
  run(Kernel<width, false, false>{arguments...});
}
// The same for the width of the problem's heads.
template <template <int, bool, bool> class Kernel, class... Arguments>
void launch_flash(const char* name, Device device, const Problem& problem, bool keys_are_values, const Arguments&... arguments) {
  with_width(problem, [&]<int width>(Width<width>) { launch_width<Kernel, width>(name, device, problem, keys_are_values, arguments...); });
}

// The same for the widths 64 and 128, which kernels on wgmma have.
template <template <int, bool, bool> class Kernel, class... Arguments>
void launch_wgmma(const char* name, Device device, const Problem& problem, bool keys_are_values, const Arguments&... arguments) {
  if (problem.width == 64) return launch_width<Kernel, 64>(name, device, problem, keys_are_values, arguments...);
  launch_width<Kernel, 128>(name, device, problem, keys_are_values, arguments...);
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
