// The CUDA emulator: runs the kernels of a .cu file, compiled as ordinary C++, with one fiber per CUDA thread.
// This header is what a kernel file sees instead of CUDA's own: the words (__device__, float4, threadIdx), shared memory
// and, in collectives.h, the device functions. The work is done in launch.cpp, block.cpp, fiber.cpp and memory.cpp.
//
// A kernel may not: use __shared__ or extern __shared__ (SHARED and dynamic_shared instead), return before a barrier or a
// warp collective unless all threads of the block do, wait in a loop without __nanosleep, be noexcept. Lambdas capture SHARED
// variables by reference.
//
// Environment, read once:
//   RICCI_EMULATOR_ORDER    forward, reverse or random: the order of blocks, warps and lanes
//   RICCI_EMULATOR_SEED     of the random order
//   RICCI_EMULATOR_WORKERS  how many OS threads run the blocks of one launch
//   RICCI_EMULATOR_ISOLATE  1: blocks do not see each other's writes (isolation.h): finds races between blocks; slow
//   RICCI_EMULATOR_ENDS     1: large launches run their first and last block alone, over memory that is not there until it is written
//                           (memory/sparse.h): finds indices of 32 bits that overflow; what is computed means nothing
//   RICCI_EMULATOR_LAZY     1: launches run when something waits for them, see streams.h
//   RICCI_EMULATOR_STRICT   0: threads that returned count as arrived, as on hardware; 1 (default): that is an error
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

namespace emu {  // a binary may also hold objects that know CUDA's own types of the same names

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};
constexpr int2 make_int2(int x, int y) { return {x, y}; }
constexpr int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
constexpr uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
constexpr uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
constexpr float2 make_float2(float x, float y) { return {x, y}; }
constexpr float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
constexpr double2 make_double2(double x, double y) { return {x, y}; }

inline constinit thread_local uint3 threadIdx{}, blockIdx{};
inline constinit thread_local dim3 blockDim{}, gridDim{};
inline constexpr int warpSize = 32;

// A place in the source. Device functions take it as their last argument, by default the caller's.
struct Loc {
  const char* file = __builtin_FILE();
  int line = __builtin_LINE();
};

// ---- launching

struct Launch {
  const char* name;  // the kernel's, for messages
  dim3 grid, block;
  size_t dynamic_shared_bytes;
  Loc loc;
};

// Calls body(kernel) once for every thread of every block and returns when all are done. May be called from several OS
// threads at a time, not from a kernel. Throws ricci::Error, one line that names the kernel, the block, the threads and
// the lines they are at, for: an invalid size, a barrier or collective that not all threads reach, a deadlock, a loop
// that waits for nothing, a write past the end of shared or device memory. Later launches are not affected.
void run(const Launch& launch, void (*body)(const void* kernel), const void* kernel);

// The same with `kernel`, `bytes` long, copied: runs on the current stream, at once or when it is waited for; see streams.h. Wrong sizes,
// and pointers to memory of the CPU among the arguments, are thrown here, everything else where it runs.
void launch(const Launch& launch, void (*body)(const void* kernel), const void* kernel, size_t bytes);

struct Options {
  enum class Order : uint8_t { forward, reverse, random } order = Order::forward;
  uint64_t seed = 1;
  int workers = 1;
  bool strict = true;
  bool lazy = false;           // the main stream too runs its work when it is waited for
  bool isolate = false;        // with one worker
  bool wgmma = true;           // otherwise as GPUs without it, for tests of the kernels that these take
  bool ends = false;           // not with isolate, nor under AddressSanitizer or ThreadSanitizer
  unsigned max_polls = 20000;  // so often may threads wake from __nanosleep while nothing else happens in the block
};
Options& options();  // not to be changed while a launch runs
// Error: a variable RICCI_EMULATOR_* asks for something that there is not; options that exclude each other. Allocations and launches call
// it; options() itself is also asked while errors are handled, and throws nothing.
void check_options();

// ---- device memory: aligned to 256 bytes, filled with 0xff (NaN), or with zeros where it is sparse (memory/sparse.h), a red zone on
// either side that every launch checks. Under AddressSanitizer only kernels and the copies below may touch it. A wrong pointer or size
// throws ricci::Error.

void* allocate(size_t bytes);
void release(void* device);  // null is allowed
void copy_in(void* device, const void* host, size_t bytes);
void copy_out(void* host, const void* device, size_t bytes);
void copy_within(void* target, const void* source, size_t bytes);  // the ranges do not overlap
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

// A shared variable of the block: SHARED(float, tile, [32][33]);   the lambda makes each place a type of its own
#define SHARED(type, name, ...) auto& name = ::emu::static_shared<type __VA_ARGS__>(#name, [] {})

using emu::blockDim, emu::blockIdx, emu::gridDim, emu::threadIdx, emu::warpSize;
using emu::dim3, emu::double2, emu::float2, emu::float4, emu::int2, emu::int4, emu::uint2, emu::uint3, emu::uint4;
using emu::make_double2, emu::make_float2, emu::make_float4, emu::make_int2, emu::make_int4;
using emu::make_uint2, emu::make_uint3, emu::make_uint4;

#include "cuda/emulator/instructions/collectives.h"
