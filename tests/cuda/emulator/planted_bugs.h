// Kernels with one mistake each. kLine is the line at which the emulator should report waiting threads.
#pragma once
#include <string>

#include "cuda/ptx.h"

namespace planted {

inline std::string at(int line) { return std::string(__FILE__) + ":" + std::to_string(line); }

struct DivergentBarrier {
  static constexpr int kLine = __LINE__ + 3;
  float* x;
  __device__ void operator()() const {
    if (threadIdx.x < 64) __syncthreads();
    x[threadIdx.x] = 1;
  }
};

struct BarrierAfterReturn {
  static constexpr int kLine = __LINE__ + 5;
  float* x;
  unsigned n;
  __device__ void operator()() const {
    if (threadIdx.x >= n) return;
    __syncthreads();
    x[threadIdx.x] = 1;
  }
};

struct DifferentBarriers {
  static constexpr int kOdd = __LINE__ + 4, kEven = __LINE__ + 6;
  float* x;
  __device__ void operator()() const {
    if (threadIdx.x % 2) {
      __syncthreads();
    } else {
      __syncthreads();
    }
    x[threadIdx.x] = 1;
  }
};

// Lanes 16 to 31 wait at the barrier instead.
struct ShuffleSomeNeverReach {
  static constexpr int kShuffle = __LINE__ + 4, kBarrier = __LINE__ + 5;
  float* x;
  __device__ void operator()() const {
    float value = x[threadIdx.x];
    if (threadIdx.x < 16) value += __shfl_xor_sync(~0u, value, 1);
    __syncthreads();
    x[threadIdx.x] = value;
  }
};

// Lanes leave the loop at different times and reach a different collective.
struct ShuffleInUnevenLoop {
  float* x;
  unsigned n;
  __device__ void operator()() const {
    float sum = 0;
    for (unsigned i = threadIdx.x; i < n; i += 32) sum += __shfl_xor_sync(~0u, x[i], 1);
    __syncwarp();
    x[threadIdx.x] = sum;
  }
};

struct ReturnBeforeShuffle {
  static constexpr int kLine = __LINE__ + 4;
  float* x;
  __device__ void operator()() const {
    if (threadIdx.x == 7) return;
    x[threadIdx.x] = __shfl_xor_sync(~0u, x[threadIdx.x], 1);
  }
};

struct ShuffleFromOutside {
  int* x;
  __device__ void operator()() const {
    if (threadIdx.x < 16) x[threadIdx.x] = __shfl_sync(0xffffu, static_cast<int>(threadIdx.x), 20);
  }
};

struct ShuffleOutsideMask {
  int* x;
  __device__ void operator()() const { x[threadIdx.x] = __shfl_sync(0xfffffffeu, 1, 1); }
};

struct ShuffleWidth {
  int* x;
  __device__ void operator()() const { x[threadIdx.x] = __shfl_sync(~0u, 1, 1, 12); }
};

// Lanes meet at one instruction, but from two lines. The result is undefined on hardware.
template <bool loads> struct WarpInstructionFromTwoLines {
  static constexpr int kOdd = __LINE__ + 7, kEven = __LINE__ + 9, kLoadOdd = __LINE__ + 12, kLoadEven = __LINE__ + 13;
  __device__ void operator()() const {
    SHARED(uint4, tile, [32]);
    float c[4] = {};
    uint32_t a[4] = {}, b[2] = {}, r[1];
    if constexpr (!loads) {
      if (threadIdx.x % 2) {
        ricci::ptx::mma_bf16(c, a, b);
      } else {
        ricci::ptx::mma_bf16(c, a, b);
      }
    } else {
      if (threadIdx.x % 2) ricci::ptx::ldmatrix<1>(r, &tile[threadIdx.x]);
      else ricci::ptx::ldmatrix<1>(r, &tile[threadIdx.x]);
    }
  }
};

// The last block to finish adds up the numbers of all blocks, with or without fences: before the atomic add, and before the reads.
template <bool fence> struct LastBlockSums {
  float *parts, *sum;
  unsigned* arrived;
  __device__ void operator()() const {
    SHARED(bool, last, [1]);
    parts[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<float>(threadIdx.x + 1);
    if (fence) __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last[0] = atomicAdd(arrived, 1u) + 1 == gridDim.x;
    __syncthreads();
    if (!last[0] || threadIdx.x != 0) return;
    if (fence) __threadfence();
    for (unsigned i = 0; i < gridDim.x * blockDim.x; ++i) *sum += parts[i];
  }
};

struct MissingBarrier {
  float* y;
  __device__ void operator()() const {
    SHARED(float, values, [64]);
    values[threadIdx.x] = static_cast<float>(threadIdx.x);
    y[threadIdx.x] = values[63 - threadIdx.x];
  }
};

// The initial value is there in each order, but which one depends on the order.
struct MissingBarrierOrder {
  float* y;
  __device__ void operator()() const {
    SHARED(float, last, [1]);
    last[0] = static_cast<float>(threadIdx.x);
    __syncthreads();
    y[threadIdx.x] = last[0];
  }
};

// Each thread waits for its own copy, and reads another's.
struct CopyWithoutBarrier {
  const float* x;
  float* y;
  __device__ void operator()() const {
    SHARED(float, tile, [64]);
    ricci::ptx::cp_async<4>(&tile[threadIdx.x], x + threadIdx.x);
    ricci::ptx::cp_async_wait_all();
    y[threadIdx.x] = tile[63 - threadIdx.x];
  }
};

// A warp does not run in lockstep.
struct MissingWarpBarrier {
  float* y;
  __device__ void operator()() const {
    SHARED(float, values, [32]);
    values[threadIdx.x] = static_cast<float>(threadIdx.x);
    y[threadIdx.x] = values[31 - threadIdx.x];
  }
};

struct UninitialisedShared {
  float* y;
  __device__ void operator()() const {
    SHARED(float, sum, [1]);
    atomicAdd(&sum[0], 1.0f);
    __syncthreads();
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum[0];
  }
};

struct StaticSharedOverrun {
  unsigned n;  // 64: one past the end
  __device__ void operator()() const {
    SHARED(float, tile, [64]);
    SHARED(float, other, [64]);
    float* p = tile;
    other[threadIdx.x] = 0;
    if (threadIdx.x == 3) p[n] = 5;
  }
};

struct DynamicSharedOverrun {
  unsigned n;
  __device__ void operator()() const {
    if (threadIdx.x == 3) emu::dynamic_shared<float>()[n] = 5;
  }
};

struct DeviceOverrun {
  float* x;
  int at;
  __device__ void operator()() const {
    if (threadIdx.x == 3 && blockIdx.x == 1) x[at] = 5;
  }
};

// 2^31 elements and more have no index of type int.
template <class Index> struct FillByIndex {
  float* y;
  __device__ void operator()() const {
    const auto i = static_cast<Index>(static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x);
    y[i] = 1;
  }
};

template <class T> struct ReadPastTheEnd {
  const T* x;
  T* y;
  int n;
  __device__ void operator()() const {
    SHARED(T, tile, [3]);
    for (int i = 0; i < 3; ++i) tile[i] = T(0);
    const T* p = tile;
    y[0] = x[n], y[1] = x[-1], y[2] = p[n];
  }
};

struct TooMuchStaticShared {
  __device__ void operator()() const {
    SHARED(double, huge, [8192]);
    huge[threadIdx.x] = 0;
  }
};

struct SpinOnFlag {
  int* flag;
  __device__ void operator()() const {
    if (threadIdx.x < 5)
      while (atomicAdd(flag, 0) == 0) __nanosleep(100);
  }
};

// Thread 0 takes the lock and never gives it back.
struct SpinOnLock {
  int* lock;
  __device__ void operator()() const {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
  }
};

struct Trap {
  static constexpr int kLine = __LINE__ + 2;
  __device__ void operator()() const {
    if (threadIdx.x == 1 && threadIdx.y == 2) __trap();
    __syncthreads();
  }
};

// Only ThreadSanitizer sees the next ones.

struct BlockRace {
  float* y;
  __device__ void operator()() const { y[(threadIdx.x + blockIdx.x) % blockDim.x] += 1.0f; }
};

}  // namespace planted
