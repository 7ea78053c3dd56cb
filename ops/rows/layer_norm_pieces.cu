// With N rows of d numbers in bf16:
//   forward    4 N d bytes; 8 N d with a residual       backward   6 N d bytes; 8 N d with a residual
//   floor      N = 65,536, d = 768 on an H200, with a residual: 403 MB at 4.8 TB/s 0.08 ms, each way
#include "ops/rows/layer_norm_pieces.h"

#include <initializer_list>

#include "cuda/launch.h"
#include "cuda/math.h"
#include "cuda/verbs/bf16_pieces.h"
#include "cuda/verbs/reduce.h"

namespace ricci {
namespace layer_norm_kernels {

// A row in a warp: lane l has the pieces l, l + 32, ... of up to kPieces; those beyond the row are nobody's.
template <int kPieces> struct WarpRow {
  int64_t row, d;
  __device__ explicit WarpRow(int64_t d_) : row((int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32), d(d_) {}

  // f(p, column) for the lane's pieces.
  template <class F> __device__ void each(F f) const {
    UNROLL(8)
    for (int p = 0; p < kPieces; ++p)
      if (const int64_t column = (p * 32 + threadIdx.x % 32) * kPiece; column < d) f(p, column);
  }
  template <class F> __device__ void each_element(F f) const {
    each([&](int p, int64_t) {
      UNROLL(8)
      for (int i = 0; i < kPiece; ++i) f(p, i);
    });
  }
  __device__ void load(const bf16* matrix, float (&v)[kPieces][kPiece]) const {
    each([&](int p, int64_t column) { load_piece(matrix + row * d + column, v[p]); });
  }
  __device__ void store(bf16* matrix, const float (&v)[kPieces][kPiece]) const {
    each([&](int p, int64_t column) { store_piece(matrix + row * d + column, v[p]); });
  }
  // The mean of f(p, i).
  template <class F> __device__ float mean(F f) const {
    float sum = 0;
    each_element([&](int p, int i) { sum += f(p, i); });
    return warp_reduce(sum, Sum{}) / static_cast<float>(d);
  }
};

template <int kPieces> struct ForwardKernel {
  static constexpr int kThreads = 256;
  Bf16Rows of;

  __device__ void operator()() const {
    const WarpRow<kPieces> row(of.d);
    if (row.row >= of.rows) return;
    float s[kPieces][kPiece];
    row.load(of.x_rd, s);
    if (of.branch_rd) add_branch(row, s);
    const float mean = row.mean([&](int p, int i) { return s[p][i]; });
    const float variance = row.mean([&](int p, int i) { return (s[p][i] - mean) * (s[p][i] - mean); });
    const float rstd = 1 / math::sqrt(variance + of.eps);
    row.each([&](int p, int64_t column) {
      float gain[kPiece], bias[kPiece] = {};
      load_piece(of.gain_d + column, gain);
      if (of.bias_d) load_piece(of.bias_d + column, bias);
      UNROLL(8)
      for (int i = 0; i < kPiece; ++i) s[p][i] = (s[p][i] - mean) * rstd * gain[i] + bias[i];
    });
    row.store(of.y_rd, s);
    if (threadIdx.x % 32 == 0) {
      of.mean_r[row.row] = mean;
      of.rstd_r[row.row] = rstd;
    }
  }
  // s = x + branch, rounded as it is stored.
  __device__ void add_branch(const WarpRow<kPieces>& row, float (&s)[kPieces][kPiece]) const {
    float branch[kPieces][kPiece];
    row.load(of.branch_rd, branch);
    row.each_element([&](int p, int i) { s[p][i] = float(bf16(s[p][i] + branch[p][i])); });
    row.store(of.s_rd, s);
  }
};

template <int kPieces> struct BackwardKernel {
  static constexpr int kThreads = 256;
  Bf16RowsBackward of;

  __device__ void operator()() const {
    const WarpRow<kPieces> row(of.d);
    if (row.row >= of.rows) return;
    float g[kPieces][kPiece], n[kPieces][kPiece];
    row.load(of.dy_rd, g);
    row.load(of.s_rd, n);
    const float mean = of.mean_r[row.row], rstd = of.rstd_r[row.row];
    row.each([&](int p, int64_t column) {
      float gain[kPiece];
      load_piece(of.gain_d + column, gain);
      UNROLL(8)
      for (int i = 0; i < kPiece; ++i) {
        g[p][i] *= gain[i];
        n[p][i] = (n[p][i] - mean) * rstd;
      }
    });
    const float mean_g = row.mean([&](int p, int i) { return g[p][i]; }),
                mean_gn = row.mean([&](int p, int i) { return g[p][i] * n[p][i]; });
    row.each([&](int p, int64_t column) {
      float ds[kPiece] = {};
      if (of.ds_rd) load_piece(of.ds_rd + row.row * of.d + column, ds);
      UNROLL(8)
      for (int i = 0; i < kPiece; ++i) g[p][i] = ds[i] + rstd * (g[p][i] - mean_g - n[p][i] * mean_gn);
    });
    row.store(of.dx_rd, g);
  }
};

inline bool aligned(std::initializer_list<const void*> pointers) {
  for (const void* p : pointers)
    if (reinterpret_cast<uintptr_t>(p) % 16) return false;
  return true;
}

// Launches Kernel<4> or Kernel<8>, as many registers as a row needs.
template <template <int> class Kernel, class Rows> bool launch_rows(const char* name, Device device, const Rows& of) {
  if (of.d % kPiece || of.d > 8 * 32 * kPiece) return false;
  const Grid grid = thread_per(of.rows * 32);
  if (of.d <= 4 * 32 * kPiece) launch(name, device, grid, Kernel<4>{of});
  else launch(name, device, grid, Kernel<8>{of});
  return true;
}

HOST bool norm_pieces(const char* name, Device device, const Bf16Rows& of) {
  return aligned({of.x_rd, of.branch_rd, of.gain_d, of.bias_d, of.s_rd, of.y_rd}) && launch_rows<ForwardKernel>(name, device, of);
}

HOST bool norm_pieces_backward(const char* name, Device device, const Bf16RowsBackward& of) {
  return aligned({of.dy_rd, of.ds_rd, of.s_rd, of.gain_d, of.dx_rd}) && launch_rows<BackwardKernel>(name, device, of);
}

}  // namespace layer_norm_kernels

using namespace layer_norm_kernels;

CUDA_KERNEL(ForwardKernel<4>);
CUDA_KERNEL(ForwardKernel<8>);
CUDA_KERNEL(BackwardKernel<4>);
CUDA_KERNEL(BackwardKernel<8>);

}  // namespace ricci
