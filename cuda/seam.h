// The seam between the two builds of a kernel file (*.cu).
//   g++   compiles the full file: the public functions, the CPU code, the backward formulas and, with the emulator's
//         vocabulary, every kernel for cuda_emulated.
//   nvcc  compiles the same file for its kernels only. HOST turns the public functions into templates without an instance,
//         so nvcc skips them. CUDA_KERNEL instantiates the launchers that the g++ build calls. A kernel without a
//         CUDA_KERNEL line causes a link error in a build with nvcc; a build without nvcc does not notice it.
#pragma once
#include "core/dtype.h"

#ifdef __CUDACC__

#include <cuda_runtime.h>

#define HOST template <class HostBuildOnly = void>
#define SHARED(type, name, ...) __shared__ type name __VA_ARGS__
// Used for a loop over an array in registers. An index that is not a constant would move the array to memory. UNROLL(8) unrolls the loop
// eight times; UNROLL(1) keeps the loop.
#define RICCI_PRAGMA(text) _Pragma(#text)
#define UNROLL(times) RICCI_PRAGMA(unroll times)

// The Grid::dynamic_shared_bytes of the launch. The address is a multiple of 1,024, as descriptors of wgmma require (cuda/ptx.h).
template <class T> __device__ inline T* dynamic_shared() {
  extern __shared__ __align__(1024) unsigned char of_launch[];
  return reinterpret_cast<T*>(of_launch);
}

#else

#include "cuda/emulator/emulator.h"

#define HOST
#define UNROLL(times)

using emu::dynamic_shared;

#endif

// The two compilers, line by line:
//   in a file.cu                         g++ sees                                        nvcc sees
//   struct Scale { __device__ ... };     a C++ struct; the emulator calls it             device code
//   SHARED(float, tile, [32]);           memory of the emulated block, full of NaN       __shared__ float tile[32];
//   HOST Tensor scale(const Arg& x)      the public function                             a template without an instance
//   launch("scale", ...)                 emulator, or a call of the launcher of nvcc     nothing: it is inside a HOST function
//   CUDA_KERNEL(Scale);                  static_assert(true)                             the launcher, and the kernel inside it
//   UNROLL(4)                            nothing                                         #pragma unroll 4
