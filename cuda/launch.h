// The one launch. A kernel is a trivially copyable struct: its members are the arguments, operator() is what each thread
// runs, kThreads bounds the block. With kMinBlocks, the compiler limits the registers so that this number of blocks fits on a
// multiprocessor:
//   struct Scale { static constexpr int kThreads = 256; float* x; float by; __device__ void operator()() const {...} };
//   launch("scale", device, {blocks, 256}, Scale{x, 2});          in a public function
//   CUDA_KERNEL(Scale)                                            once, at the end of the file
#pragma once
#include "core/memory/dry_run.h"
#include "core/tensor.h"
#include "cuda/grid.h"
#include "cuda/seam.h"

namespace ricci {

#ifdef __CUDACC__

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
void check(cudaError_t status, const char* what);         // throws an error, with the name
void check_grid(const char* name, Grid grid);             // throws, too
void begin_launch(const char* name);                      // for profilers
void check_launch(const char* name, cudaError_t status);  // ends what begin_launch began, and throws

// The CUDA runtime is called here, and not in cuda/toolkit, because the library of ricci and a program that has kernels too each link a
// runtime, and only the runtime of the object that holds a kernel knows that kernel.
template <class Kernel> void launch(const char* name, Grid grid, const Kernel& kernel) {
  static_assert(__is_trivially_copyable(Kernel) && sizeof(Kernel) <= 4096, "kernel arguments are copied to the device as bytes");
  check_grid(name, grid);
  // More than 48 KiB of shared memory, the kernel's own variables included, must be allowed. The size of those is not known here, so
  // every kernel with dynamic memory is allowed the bytes that it asks for, once.
  thread_local int allowed = 0;
  if (grid.dynamic_shared_bytes > allowed) {
    check(cudaFuncSetAttribute(run<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize, grid.dynamic_shared_bytes), name);
    allowed = grid.dynamic_shared_bytes;
  }
  const cudaStream_t on = stream();
  begin_launch(name);
  run<Kernel><<<dim3(static_cast<unsigned>(grid.blocks)), grid.threads, grid.dynamic_shared_bytes, on>>>(kernel);
  check_launch(name, cudaGetLastError());
}

}  // namespace cuda_build

template <class Kernel> void launch(const char* name, Device device, Grid grid, const Kernel& kernel);  // in the g++ build

#define CUDA_KERNEL(...) template void ::ricci::cuda_build::launch<__VA_ARGS__>(const char*, Grid, const __VA_ARGS__&)

#else

[[noreturn]] void launch_without_device(const char* name, Device device);
[[noreturn]] void refuse_threads(const char* name, int threads, int most);  // the compiler gave registers to `most` threads

// Where tests put a stub in the place of the CUDA runtime (tests/cuda/stub), kernels for cuda run on the emulator, and this function
// launches them there. Null everywhere else.
using LaunchOnStub = void (*)(const emu::Launch& launch, void (*body)(const void*), const void* kernel, size_t bytes);
inline constinit LaunchOnStub launch_on_stub = nullptr;

namespace cuda_build {
#ifdef RICCI_HAS_CUDA
template <class Kernel> void launch(const char* name, Grid grid, const Kernel& kernel);  // in the object nvcc made of this file
#else
template <class Kernel> void launch(const char* name, Grid, const Kernel&) { launch_without_device(name, Device::cuda); }
#endif
}  // namespace cuda_build

// Runs the kernel on `device` (cuda or cuda_emulated), on the current stream. No blocks: nothing happens.
template <class Kernel>
void launch(
    const char* name, Device device, Grid grid, const Kernel& kernel, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  static_assert(__is_trivially_copyable(Kernel) && sizeof(Kernel) <= 4096, "kernel arguments are copied to the device as bytes");
  if (grid.blocks == 0 || is_dry_run()) return;
  if (grid.threads > Kernel::kThreads) refuse_threads(name, grid.threads, Kernel::kThreads);
  if (device == Device::cuda && !launch_on_stub) return cuda_build::launch(name, grid, kernel);
  if (device == Device::cpu) launch_without_device(name, device);
  const emu::Launch config{name, dim3(static_cast<unsigned>(grid.blocks)), dim3(static_cast<unsigned>(grid.threads)),
      static_cast<size_t>(grid.dynamic_shared_bytes), {file, line}};
  alignas(Kernel) unsigned char bytes[sizeof kernel];
  __builtin_memcpy(bytes, &kernel, sizeof kernel);
#if __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(reinterpret_cast<Kernel*>(bytes));  // chance values there may look like a pointer
#endif
  const LaunchOnStub run = device == Device::cuda ? launch_on_stub : emu::launch;
  run(
      config, [](const void* k) { (*static_cast<const Kernel*>(k))(); }, bytes, sizeof kernel);
}

#define CUDA_KERNEL(...) static_assert(true)

#endif

}  // namespace ricci
