// Kernels that use each wrapped instruction and each of CUDA's warp functions once. Built for the GPU in ptx_kernels.cu.
#pragma once
#include "core/dtype.h"
#include "cuda/launch.h"
#include "cuda/ptx.h"

namespace ricci::ptx_kernels {

// c += a b on one warp; each array holds the registers of lane 0, then of lane 1, ...
struct Mma {
  static constexpr int kThreads = 32;
  const uint32_t *a, *b;
  float* c;
  __device__ void operator()() const {
    uint32_t of_a[4], of_b[2];
    float of_c[4];
    for (int r = 0; r < 4; ++r) of_a[r] = a[threadIdx.x * 4 + r], of_c[r] = c[threadIdx.x * 4 + r];
    for (int r = 0; r < 2; ++r) of_b[r] = b[threadIdx.x * 2 + r];
    ptx::mma_bf16(of_c, of_a, of_b);
    for (int r = 0; r < 4; ++r) c[threadIdx.x * 4 + r] = of_c[r];
  }
};

// Copies rows of chunks of 16 bytes to a tile of panels of 64 elements a row, as wgmma reads them.
__device__ inline void copy_to_panels(bf16* tile, const bf16* from, int rows, int chunks, int panel, int threads) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * chunks; i += threads) {
    const int row = i / chunks, chunk = i % chunks;
    ptx::store16(tile + chunk / 8 * panel + row * 64 + (chunk % 8 ^ row % 8) * 8, ptx::load16(from + i * 8));
  }
}

// d [64][columns] = a b of one warpgroup, or d += a b. b is in shared memory as [columns][kDepth], transposed as [kDepth][columns]. a and d
// hold the registers of thread 0, then of thread 1, ...
template <int columns, bool transposed, bool accumulate> struct Wgmma {
  static constexpr int kThreads = 128, kDepth = transposed ? 32 : 128;
  static constexpr int kRows = transposed ? kDepth : columns, kChunks = (transposed ? columns : kDepth) / 8, kPanel = kRows * 64;
  static constexpr int kBytes = kRows * kChunks * 16;
  const uint32_t* a;
  const bf16* b;
  float* d;
  __device__ void operator()() const {
    bf16* const tile = dynamic_shared<bf16>();
    copy_to_panels(tile, b, kRows, kChunks, kPanel, kThreads);
    ptx::fence_proxy_async();
    __syncthreads();
    uint32_t left[kDepth / 16][4];
    float sum[columns / 8][4];
    for (int i = 0; i < kDepth / 4; ++i) left[i / 4][i % 4] = a[static_cast<int>(threadIdx.x) * kDepth / 4 + i];
    for (int i = 0; i < columns / 2; ++i) sum[i / 4][i % 4] = d[static_cast<int>(threadIdx.x) * columns / 2 + i];
    const ptx::Descriptor of_tile = ptx::descriptor(tile, kPanel * 2, 1024);
    ptx::wgmma_fence(sum, left);
    ptx::wgmma_bf16<transposed, accumulate>(sum, left[0], of_tile);
    UNROLL(8)
    for (int k = 1; k < kDepth / 16; ++k)
      ptx::wgmma_bf16<transposed, true>(sum, left[k], of_tile.after(transposed ? k * 2048 : k / 4 * kPanel * 2 + k % 4 * 32));
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>(sum);
    for (int i = 0; i < columns / 2; ++i) d[static_cast<int>(threadIdx.x) * columns / 2 + i] = sum[i / 4][i % 4];
  }
};

// Wgmma with a [64][kDepth] in shared memory.
template <bool transposed, bool accumulate> struct WgmmaShared {
  using Right = Wgmma<64, transposed, accumulate>;
  static constexpr int kThreads = 128, kDepth = Right::kDepth, kPanels = (kDepth + 63) / 64, kPanel = 64 * 64;
  static constexpr int kLeft = kPanels * kPanel, kBytes = kLeft * 2 + Right::kBytes;
  const bf16 *a, *b;
  float* d;
  __device__ void operator()() const {
    bf16 *const left = dynamic_shared<bf16>(), *const right = left + kLeft;
    const int thread = static_cast<int>(threadIdx.x);
    copy_to_panels(left, a, 64, kDepth / 8, kPanel, kThreads);
    copy_to_panels(right, b, Right::kRows, Right::kChunks, Right::kPanel, kThreads);
    ptx::fence_proxy_async();
    __syncthreads();
    float sum[8][4];
    for (int i = 0; i < 32; ++i) sum[i / 4][i % 4] = d[thread * 32 + i];
    const auto of_left = [&](int k) { return ptx::descriptor(left, kPanel * 2, 1024).after(k / 4 * kPanel * 2 + k % 4 * 32); };
    const ptx::Descriptor of_right = ptx::descriptor(right, Right::kPanel * 2, 1024);
    if constexpr (accumulate) ptx::wgmma_fence(sum);
    else ptx::wgmma_fence();
    ptx::wgmma_bf16<transposed, accumulate>(sum, of_left(0), of_right);
    UNROLL(8)
    for (int k = 1; k < kDepth / 16; ++k)
      ptx::wgmma_bf16<transposed, true>(sum, of_left(k), of_right.after(transposed ? k * 2048 : k / 4 * Right::kPanel * 2 + k % 4 * 32));
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>(sum);
    for (int i = 0; i < 32; ++i) d[thread * 32 + i] = sum[i / 4][i % 4];
  }
};

// The registers from N matrices of 8 rows of 8 elements, one after the other in x: r [lane][N].
template <int N, bool transposed> struct Ldmatrix {
  static constexpr int kThreads = 32;
  const uint16_t* x;
  uint32_t* r;
  __device__ void operator()() const {
    SHARED(uint4, tile, [32][3]);  // a row of 16 bytes, and 32 to spread the banks
    const int lane = static_cast<int>(threadIdx.x);
    if (lane < 8 * N) ptx::store16(&tile[lane][0], ptx::load16(x + lane * 8));
    __syncwarp();
    uint32_t of_lane[N];
    if constexpr (transposed) ptx::ldmatrix_trans<N>(of_lane, &tile[lane % (8 * N)][0]);
    else ptx::ldmatrix<N>(of_lane, &tile[lane % (8 * N)][0]);
    for (int i = 0; i < N; ++i) r[lane * N + i] = of_lane[i];
  }
};

// y = x in tiles of 64 times N bytes, reversed within each tile, and zero beyond the `bytes` of x. Three tiles in flight.
template <int N> struct Pipeline {
  static constexpr int kThreads = 64, kStages = 3;
  const char* x;
  char* y;
  int bytes, tiles;

  __device__ void begin(char* stage, int tile) const {
    const int at = (tile * kThreads + static_cast<int>(threadIdx.x)) * N, left = bytes - at;
    if (tile < tiles) ptx::cp_async<N>(stage + threadIdx.x * N, left > 0 ? x + at : x, left < 0 ? 0 : left < N ? left : N);
    ptx::cp_async_commit();
  }
  __device__ void operator()() const {
    SHARED(uint4, stages, [kStages][kThreads]);
    for (int tile = 0; tile < kStages - 1; ++tile) begin(reinterpret_cast<char*>(stages[tile]), tile);
    for (int tile = 0; tile < tiles; ++tile) {
      ptx::cp_async_wait<kStages - 2>();
      __syncthreads();  // every thread's part is there, and the stage filled next has been read
      begin(reinterpret_cast<char*>(stages[(tile + kStages - 1) % kStages]), tile + kStages - 1);
      const char* stage = reinterpret_cast<const char*>(stages[tile % kStages]);
      for (int i = 0; i < N; ++i) y[(tile * kThreads + threadIdx.x) * N + i] = stage[(kThreads - 1 - threadIdx.x) * N + i];
    }
  }
};

struct Rounding {
  static constexpr int kThreads = 256;
  const float* x;
  uint32_t* packed;
  __device__ void operator()() const { packed[threadIdx.x] = ptx::pack_bf16(x[threadIdx.x], -x[threadIdx.x]); }
};

struct Approximations {
  static constexpr int kThreads = 256;
  const float* x;
  float *power, *reciprocal;
  __device__ void operator()() const {
    power[threadIdx.x] = ptx::exp2_approx(x[threadIdx.x]);
    reciprocal[threadIdx.x] = ptx::reciprocal_approx(x[threadIdx.x]);
  }
};

// out [kWords][64 threads]
struct Words {
  static constexpr int kThreads = 64, kWords = 8;
  const int* x;
  int* out;
  __device__ void operator()() const {
    const unsigned t = threadIdx.x;
    const int v = x[t];
    int word = 0;
    const auto put = [&](auto value) { out[word++ * kThreads + t] = static_cast<int>(value); };
    put(__ballot_sync(~0u, v > 0));
    put(__any_sync(~0u, v == x[3]));
    put(__all_sync(~0u, v != x[3]));
    put(__match_any_sync(~0u, v & 3));
    put(__shfl_sync(~0u, v, static_cast<int>(t) + 5));
    put(__shfl_up_sync(~0u, v, 3, 16));
    put(__shfl_down_sync(~0u, v, 9));
    put(__shfl_xor_sync(~0u, v, 6));
  }
};

// 128 threads a block, in many blocks, on cells that begin as 0.
struct Atomics {
  static constexpr int kThreads = 128;
  int *sum, *first, *winners, *exchanged;
  float* f32;
  double* f64;
  unsigned long long* u64;
  __device__ void operator()() const {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    atomicAdd(sum, i);
    if (atomicCAS(first, 0, i + 1) == 0) atomicAdd(winners, 1);
    atomicExch(exchanged, 7);
    atomicAdd(f32, 0.5f);
    atomicAdd(f64, 0.25);
    atomicAdd(u64, 1ull << 32 | 1);
  }
};

}  // namespace ricci::ptx_kernels
