// c_mn = sum_k a_mk b_kn for any strides: a block computes a 16 x 16 tile of c, in steps over k with tiles of a and b that its threads
// share. Each number is then read from memory once for 16 uses. This kernel is for the emulator and for GPUs without cuBLASLt.
//   bytes   per tile and step of 16: 2 x 256 elements read;  FLOPs 2 x 4096
//   least possible time   f32 on an H200: the FLOPs at 67 TFLOP/s; not reached: every 16 FLOPs need 4 bytes from L2
#include "cuda/gemm/backends.h"
#include "cuda/launch.h"

namespace ricci {
namespace gemm_kernels {

constexpr int kTile = 16;

template <class T, class C> struct Tiled {
  using A = Accumulator<T>;
  static constexpr int kThreads = kTile * kTile;
  const T *a, *b, *bias_n;
  C* c;
  MatrixAt a_at, b_at, c_at;
  int64_t m, n, k;
  bool accumulate;

  __device__ void operator()() const {
    SHARED(A, a_tile, [kTile][kTile + 1]);
    SHARED(A, b_tile, [kTile][kTile + 1]);
    const int row_in = static_cast<int>(threadIdx.x) / kTile, column_in = static_cast<int>(threadIdx.x) % kTile;
    const int64_t tiles_n = (n + kTile - 1) / kTile, tiles_m = (m + kTile - 1) / kTile;
    const int64_t tile_n = blockIdx.x % tiles_n, tile_m = blockIdx.x / tiles_n % tiles_m, matrix = blockIdx.x / tiles_n / tiles_m;
    const int64_t row = tile_m * kTile + row_in, column = tile_n * kTile + column_in;
    const T *of_a = a + matrix * a_at.batch_stride, *of_b = b + matrix * b_at.batch_stride;
    A sum = 0;
    for (int64_t first = 0; first < k; first += kTile) {
      const int64_t k_a = first + column_in, k_b = first + row_in;
      a_tile[row_in][column_in] = row < m && k_a < k ? A(of_a[row * a_at.row_stride + k_a * a_at.column_stride]) : A(0);
      b_tile[row_in][column_in] = column < n && k_b < k ? A(of_b[k_b * b_at.row_stride + column * b_at.column_stride]) : A(0);
      __syncthreads();
      for (int i = 0; i < kTile; ++i) sum += a_tile[row_in][i] * b_tile[i][column_in];
      __syncthreads();
    }
    if (row < m && column < n) {
      C& out = c[matrix * c_at.batch_stride + row * c_at.row_stride + column * c_at.column_stride];
      if (bias_n) sum += A(bias_n[column]);
      if (accumulate) sum += A(out);
      out = C(sum);
    }
  }
};

}  // namespace gemm_kernels

using namespace gemm_kernels;

template <class T, class C> void launch_tiled(const Gemm& g) {
  const int64_t blocks = g.batch * ((g.m + kTile - 1) / kTile) * ((g.n + kTile - 1) / kTile);
  launch(g.device == Device::cuda ? "gemm (own)" : "gemm", g.device, {blocks, kTile * kTile},
      Tiled<T, C>{static_cast<const T*>(g.a), static_cast<const T*>(g.b), static_cast<const T*>(g.bias_n), static_cast<C*>(g.c), g.a_at,
          g.b_at, g.c_at, g.m, g.n, g.k, g.accumulate});
}

HOST void gemm_tiled(const Gemm& g) {
  switch (g.dtype) {
    case Dtype::f64: return launch_tiled<double, double>(g);
    case Dtype::bf16: return g.c_f32 ? launch_tiled<bf16, float>(g) : launch_tiled<bf16, bf16>(g);
    default: return launch_tiled<float, float>(g);
  }
}

CUDA_KERNEL(Tiled<float, float>);
CUDA_KERNEL(Tiled<double, double>);
CUDA_KERNEL(Tiled<bf16, bf16>);
CUDA_KERNEL(Tiled<bf16, float>);

}  // namespace ricci
