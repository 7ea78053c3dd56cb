// The only launch function. A kernel is a struct: its members are the arguments, each thread runs operator(), and kThreads limits the
// threads of a block.
//   struct Scale { static constexpr int kThreads = 256; float* x; float by; __device__ void operator()() const {...} };
//   launch("scale", device, {blocks, 256}, Scale{x, 2});          in a public function
//   CUDA_KERNEL(Scale);                                           once, at the end of the file
// The struct must be trivially copyable. With kMinBlocks, the compiler limits the registers, so at least this number of blocks fits on a
// multiprocessor.
//
// Both compilers read this header (cuda/seam.h). For Device::cuda, launch() in the g++ build calls cuda_build::launch. CUDA_KERNEL makes
// nvcc compile that function.
#pragma once
#include "core/memory/dry_run.h"
#include "core/tensor.h"
#include "cuda/seam.h"

namespace ricci {

// The blocks and threads of a launch, and the shared memory that it requests in addition to the kernel's own variables.
struct Grid {
  int64_t blocks;
  int threads;
  int dynamic_shared_bytes = 0;
};
inline Grid thread_per(int64_t n, int threads = 256) { return {(n + threads - 1) / threads, threads}; }

#ifndef __CUDACC__

// ---- g++

[[noreturn]] void launch_without_device(const char* name, Device device);
[[noreturn]] void refuse_threads(const char* name, int threads, int most);  // the compiler allocated registers for only `most` threads

namespace cuda_build {
#ifdef RICCI_HAS_CUDA
template <class Kernel> void launch(const char* name, Grid grid, const Kernel& kernel);  // in nvcc's object of the same file
#else
template <class Kernel> void launch(const char* name, Grid, const Kernel&) { launch_without_device(name, Device::cuda); }
#endif
}  // namespace cuda_build

// Runs the kernel on `device` (cuda or cuda_emulated), on the current stream. A grid without blocks does nothing.
template <class Kernel>
void launch(
    const char* name, Device device, Grid grid, const Kernel& kernel, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  static_assert(__is_trivially_copyable(Kernel) && sizeof(Kernel) <= 4096, "kernel arguments are copied to the device as bytes");
  if (grid.blocks == 0 || is_dry_run()) return;
  if (grid.threads > Kernel::kThreads) refuse_threads(name, grid.threads, Kernel::kThreads);
  if (device == Device::cpu) launch_without_device(name, device);
  if (device == Device::cuda && !emu::cuda_stub) return cuda_build::launch(name, grid, kernel);  // cuda_stub is null outside of tests
  const emu::Launch config{name, dim3(static_cast<unsigned>(grid.blocks)), dim3(static_cast<unsigned>(grid.threads)),
      static_cast<size_t>(grid.dynamic_shared_bytes), {file, line}};
  emu::launch_kernel(config, kernel, device == Device::cuda);
}

#define CUDA_KERNEL(...) static_assert(true)

#else

// ---- nvcc

namespace cuda_build {

template <class Kernel> constexpr int min_blocks() {
  if constexpr (requires { Kernel::kMinBlocks; }) return Kernel::kMinBlocks;
  return 0;
}

template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreads, min_blocks<Kernel>()) run(const __grid_constant__ Kernel kernel) {
  kernel();
}

cudaStream_t stream();
void check(cudaError_t status, const char* name);                // throws an error with the kernel's name
void check_grid(const char* name, int64_t blocks, int threads);  // also throws
void begin_launch(const char* name);                             // begins a range for profilers
void check_launch(const char* name, cudaError_t status);         // ends this range, and throws like check()

// The CUDA runtime is called here, not in cuda/toolkit. ricci's library and a program with kernels each link a runtime, and a runtime knows
// only the kernels of its own object.
template <class Kernel> void launch(const char* name, Grid grid, const Kernel& kernel) {
  static_assert(__is_trivially_copyable(Kernel) && sizeof(Kernel) <= 4096, "kernel arguments are copied to the device as bytes");
  check_grid(name, grid.blocks, grid.threads);
  // More than 48 KiB of shared memory, including the kernel's own variables, needs an opt-in. The size of the variables is not known here,
  // so every kernel with dynamic memory opts in, for the bytes that it requests.
  thread_local int allowed = 0;
  if (grid.dynamic_shared_bytes > allowed) {
    check(cudaFuncSetAttribute(run<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize, grid.dynamic_shared_bytes), name);
    allowed = grid.dynamic_shared_bytes;
  }
  const cudaStream_t on = stream();
  begin_launch(name);
  // clang-format off
  run<Kernel><<<dim3(static_cast<unsigned>(grid.blocks)), grid.threads, grid.dynamic_shared_bytes, on>>>(kernel);
  // clang-format on
  check_launch(name, cudaGetLastError());
}

}  // namespace cuda_build

template <class Kernel> void launch(const char* name, Device device, Grid grid, const Kernel& kernel);  // defined in the g++ build

#define CUDA_KERNEL(...) template void ::ricci::cuda_build::launch<__VA_ARGS__>(const char*, Grid, const __VA_ARGS__&)

#endif

}  // namespace ricci
