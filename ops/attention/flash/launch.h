// Launches of the flash attention kernels: each is compiled for every head width, with and without dropout.
#pragma once
#include "cuda/launch.h"
#include "ops/attention/problem.h"

namespace ricci::attention_kernels::flash {

// Calls f(Choice<width, dropping>{}) with the width of the problem, and whether it has dropout.
template <int width, bool dropping> struct Choice {};
template <class F> void with_width(const Problem& problem, F f) {
  const auto with = [&]<int width>(Choice<width, false> plain) {
    return problem.dropout.active() ? f(Choice<width, true>{}) : f(plain);
  };
  if (problem.width == 32) return with(Choice<32, false>{});
  if (problem.width == 64) return with(Choice<64, false>{});
  if (problem.width == 96) return with(Choice<96, false>{});
  with(Choice<128, false>{});
}

// Launches a Kernel<width, dropping>{arguments...} with kernel.blocks() thread blocks for each head.
template <template <int, bool> class Kernel, class... Arguments>
void launch_flash(const char* name, Device device, const Problem& problem, const Arguments&... arguments) {
  with_width(problem, [&]<int width, bool dropping>(Choice<width, dropping>) {
    const Kernel<width, dropping> kernel{arguments...};
    launch(name, device, {problem.batches * problem.heads * kernel.blocks(), kernel.kThreads, kernel.kBytes}, kernel);
  });
}

#define CUDA_FLASH(Kernel) \
  CUDA_KERNEL(Kernel<32, false>); \
  CUDA_KERNEL(Kernel<32, true>); \
  CUDA_KERNEL(Kernel<64, false>); \
  CUDA_KERNEL(Kernel<64, true>); \
  CUDA_KERNEL(Kernel<96, false>); \
  CUDA_KERNEL(Kernel<96, true>); \
  CUDA_KERNEL(Kernel<128, false>); \
  CUDA_KERNEL(Kernel<128, true>)

}  // namespace ricci::attention_kernels::flash
