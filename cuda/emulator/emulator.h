// The CUDA emulator runs the kernels of a .cu file, compiled as ordinary C++, with one fiber per CUDA thread. This header replaces CUDA's
// own: it defines the keywords (__device__, threadIdx), shared memory and, in collectives.h, the device functions. Start with block.cpp.
//
// A kernel must not use __shared__ or extern __shared__ (use SHARED and dynamic_shared), must not return before a barrier or a warp
// collective unless all threads of the block do, must not wait in a loop without __nanosleep, and must not be noexcept. An error is an
// exception that passes through the kernel. Lambdas capture SHARED variables by reference.
//
// Environment variables, read once:
//   RICCI_EMULATOR_ORDER    forward, reverse or random: the order of blocks, warps and lanes
//   RICCI_EMULATOR_SEED     the seed of the random order
//   RICCI_EMULATOR_WORKERS  the number of OS threads that run the blocks of one launch
//   RICCI_EMULATOR_ISOLATE  1: blocks do not see each other's writes (isolation.h). Finds races between blocks; slow
//   RICCI_EMULATOR_ENDS     1: large launches run only their first and last block, over memory that is allocated when written
//                           (memory/sparse.h). Finds 32-bit indices that overflow; the results have no meaning
//   RICCI_EMULATOR_LAZY     1: launches run when something waits for them (queue.h)
#pragma once
#include <stddef.h>
#include <stdint.h>

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) alignas(bytes)
#define __forceinline__ inline __attribute__((always_inline))

namespace emu {  // a binary can also contain objects with CUDA's own types of these names

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};

inline constinit thread_local uint3 threadIdx{}, blockIdx{};
inline constinit thread_local dim3 blockDim{}, gridDim{};

// A source line. Device functions have it as their last argument, by default the caller's line.
struct Loc {
  const char* file = __builtin_FILE();
  int line = __builtin_LINE();
};

// ---- launching

struct Launch {
  const char* name;  // the kernel's name, for messages
  dim3 grid, block;
  size_t dynamic_shared_bytes;
  Loc loc;
};

// Calls body(kernel) once for every thread of every block and returns when all threads are done. Multiple OS threads can call run() at the
// same time; a kernel must not call it. Errors (ricci::Error, one line with the kernel, the block, the threads and their source lines): a
// size is invalid; not all threads reach a barrier or collective; threads deadlock; a loop waits forever; a write is past the end of shared
// or device memory. Later launches are not affected.
void run(const Launch& launch, void (*body)(const void* kernel), const void* kernel);

// Copies `bytes` bytes of the kernel and runs it, immediately or when something waits for it (queue.h). This call throws for invalid sizes
// and for arguments that point to CPU memory. All other errors appear when the kernel runs.
void launch(const Launch& launch, void (*body)(const void* kernel), const void* kernel, size_t bytes);

// For tests of cuda/toolkit without a GPU: tests/cuda/stub sets this function to run the kernels of Device::cuda.
inline void (*cuda_stub)(const Launch& launch, void (*body)(const void*), const void* kernel, size_t bytes) = nullptr;

// Launches a kernel struct, with cleared padding. Random bytes in the padding could look like a pointer to CPU memory.
template <class Kernel> void launch_kernel(const Launch& config, const Kernel& kernel, bool is_cuda) {
  alignas(Kernel) unsigned char bytes[sizeof kernel];
  __builtin_memcpy(bytes, &kernel, sizeof kernel);
#if __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(reinterpret_cast<Kernel*>(bytes));
#endif
  (is_cuda ? cuda_stub : &launch)(
      config, [](const void* k) { (*static_cast<const Kernel*>(k))(); }, bytes, sizeof kernel);
}

struct Options {
  enum class Order : uint8_t { forward, reverse, random } order = Order::forward;
  uint64_t seed = 1;
  int workers = 1;
  bool lazy = false;           // work runs only when something waits for it
  bool isolate = false;        // uses one worker
  bool wgmma = true;           // switched off to test the kernels for GPUs without wgmma
  bool ends = false;           // excludes isolate, AddressSanitizer and ThreadSanitizer
  unsigned max_polls = 20000;  // wake-ups from __nanosleep while nothing else happens in the block
};
Options& options();  // do not change them while a launch runs
// Error: a variable RICCI_EMULATOR_* has an invalid value, or two options conflict. Called by allocations and launches. options() itself
// throws nothing, since error handling calls it.
void check_options();

// ---- device memory: aligned to 256 bytes and filled with 0xff (NaN), or with zeros if it is sparse (memory/sparse.h). Every launch checks
// the red zones on both sides. Under AddressSanitizer, only kernels and the copies below can access device memory. A wrong pointer or size
// throws ricci::Error.

void* allocate(size_t bytes);
void release(void* device);  // null is allowed
void copy_in(void* device, const void* host, size_t bytes);
void copy_out(void* host, const void* device, size_t bytes);
void copy_within(void* target, const void* source, size_t bytes);  // the ranges must not overlap
void fill_zero(void* device, size_t bytes);

// ---- shared memory: filled with 0xff (NaN) before each block, a red zone after each object

void* dynamic_shared_memory();
void* static_shared_memory(const void* key, const char* name, size_t bytes);  // one per key and block

template <class T> T* dynamic_shared() { return static_cast<T*>(dynamic_shared_memory()); }

template <class T, class Place> T& static_shared(const char* name, Place) {
  static_assert(alignof(T) <= 128 && __is_trivially_copyable(T));
  static const char key = 0;
  return *static_cast<T*>(static_shared_memory(&key, name, sizeof(T)));
}

}  // namespace emu

// A shared variable of the block: SHARED(float, tile, [32][33]);   each lambda has its own type, which identifies the variable
#define SHARED(type, name, ...) auto& name = ::emu::static_shared<type __VA_ARGS__>(#name, [] {})

using emu::blockDim, emu::blockIdx, emu::gridDim, emu::threadIdx;
using emu::dim3, emu::float2, emu::uint3, emu::uint4;

#include "cuda/emulator/instructions/collectives.h"
