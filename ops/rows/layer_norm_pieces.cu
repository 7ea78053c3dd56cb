// With N rows of d numbers in bf16:
//   forward    4 N d bytes; 8 N d with a residual       backward   6 N d bytes; 8 N d with a residual; dgain and dbias add 8 d for each
//                                                                  of at most 512 blocks
//   floor      N = 65,536, d = 768 on an H200, with a residual: 403 MB at 4.8 TB/s 0.08 ms, each way
#include "ops/rows/layer_norm_pieces.h"

#include <algorithm>
#include <initializer_list>

#include "core/view.h"
#include "cuda/launch.h"
#include "cuda/math.h"
#include "cuda/verbs/bf16_pieces.h"
#include "cuda/verbs/columns.h"
#include "cuda/verbs/pieces.h"
#include "cuda/verbs/reduce.h"

namespace ricci {
namespace layer_norm_kernels {

// A row in a warp: lane l owns up to kPieces packs: l, l + 32, ..., up to the end of the row. With kWarps = 2 the row is in two adjacent
// warps, and each owns every second group of 32 packs.
template <int kPieces, int kWarps = 1> struct WarpRow {
  int64_t row, d;

  // Calls f(p, column) for the lane's packs.
  template <class F> __device__ void each(F f) const {
    UNROLL(8)
    for (int p = 0; p < kPieces; ++p)
      if (const int column = (p * 32 * kWarps + static_cast<int>(threadIdx.x % (32 * kWarps))) * kPiece; column < d) f(p, column);
  }
  template <class F> __device__ void each_element(F f) const {
    each([&](int p, int) {
      UNROLL(8)
      for (int i = 0; i < kPiece; ++i) f(p, i);
    });
  }
  __device__ void load(const bf16* matrix, float (&v)[kPieces][kPiece]) const {
    each([&](int p, int column) { load_piece(matrix + row * d + column, v[p]); });
  }
  __device__ void store(bf16* matrix, const float (&v)[kPieces][kPiece]) const {
    each([&](int p, int column) { store_piece(matrix + row * d + column, v[p]); });
  }
  template <class F> __device__ float mean(F f) const {
    float sum = 0;
    each_element([&](int p, int i) { sum += f(p, i); });
    return warp_reduce(sum, Sum{}) / static_cast<float>(d);
  }
};

template <int kPieces> struct ForwardKernel {
  static constexpr int kThreads = 256;
  int64_t rows, d;
  const bf16 *x_rd, *branch_rd;  // branch_rd is null without a residual; then s_rd is x_rd
  const bf16 *gain_d, *bias_d;   // bias_d is null without a bias
  bf16 *s_rd, *y_rd;
  float *mean_r, *rstd_r, eps;

  __device__ void operator()() const {
    const WarpRow<kPieces> row{(int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32, d};
    if (row.row >= rows) return;
    float s[kPieces][kPiece];
    row.load(x_rd, s);
    if (branch_rd) add_branch(row, s);
    const float mean = row.mean([&](int p, int i) { return s[p][i]; });
    const float variance = row.mean([&](int p, int i) { return (s[p][i] - mean) * (s[p][i] - mean); });
    const float rstd = math::reciprocal_sqrt(variance + eps);
    row.each([&](int p, int column) {
      float gain[kPiece], bias[kPiece] = {};
      load_piece(gain_d + column, gain);
      if (bias_d) load_piece(bias_d + column, bias);
      UNROLL(8)
      for (int i = 0; i < kPiece; ++i) s[p][i] = (s[p][i] - mean) * rstd * gain[i] + bias[i];
    });
    row.store(y_rd, s);
    if (threadIdx.x % 32 == 0) {
      mean_r[row.row] = mean;
      rstd_r[row.row] = rstd;
    }
  }
  // s = x + branch, rounded as stored.
  __device__ void add_branch(const WarpRow<kPieces>& row, float (&s)[kPieces][kPiece]) const {
    float branch[kPieces][kPiece];
    row.load(branch_rd, branch);
    row.each_element([&](int p, int i) { s[p][i] = float(bf16(s[p][i] + branch[p][i])); });
    row.store(s_rd, s);
  }
};

// A block processes some rows, one at a time for each of its warps, or for each pair of warps if a row is too long for the registers of one
// warp. The warps add the terms of dgain and dbias in registers, so dy and s are read only once. Both are held as bf16, to use half the
// registers.
template <int kPiecesOfRow> struct BackwardKernel {
  static constexpr int kWarpsOfRow = kPiecesOfRow > 4 ? 2 : 1, kPieces = kPiecesOfRow / kWarpsOfRow;
  static constexpr int kThreads = 256, kWarps = kThreads / 32, kRows = kWarps / kWarpsOfRow;
  using Row = WarpRow<kPieces, kWarpsOfRow>;
  int64_t rows, d;
  const bf16 *dy_rd, *ds_rd, *s_rd, *gain_d;  // ds_rd is null without a residual
  const float *mean_r, *rstd_r;
  bf16* dx_rd;
  int64_t rows_per_block;
  float* partial;  // [block][2][d]: the sums for dgain and dbias

  using Sums = float[2][kPieces][kPiece];

  __device__ void operator()() const {
    const int64_t first = blockIdx.x * rows_per_block, last = min(first + rows_per_block, rows);
    Sums sums = {};
    int odd = 0;
    UNROLL(1)
    for (int64_t r = first; r < last; r += kRows, odd ^= 1) {
      const int64_t mine = r + threadIdx.x / (32 * kWarpsOfRow);
      if (kWarpsOfRow > 1 || mine < last) add_row({mine, mine < last ? d : 0}, odd, sums);
    }
    store_sums(sums);
  }

  // A row after the last has d = 0.
  __device__ void add_row(const Row& row, int odd, Sums& sums) const {
    uint4 dy_words[kPieces], s_words[kPieces];
    const int64_t begin = row.row * d;
    row.each([&](int p, int column) {
      dy_words[p] = ptx::load16(dy_rd + begin + column);
      s_words[p] = ptx::load16(s_rd + begin + column);
    });
    const int64_t r = kWarpsOfRow > 1 ? min(row.row, rows - 1) : row.row;
    const float mean = mean_r[r], rstd = rstd_r[r], one_over_d = 1 / static_cast<float>(d);
    float sum_g = 0, sum_gn = 0;
    each_column(row, dy_words, s_words, mean, rstd, [&](int p, int i, float dy, float g, float n) {
      sums[0][p][i] += dy * n;
      sums[1][p][i] += dy;
      sum_g += g;
      sum_gn += g * n;
    });
    const float mean_g = sum_of_row(sum_g, odd, 0) * one_over_d, mean_gn = sum_of_row(sum_gn, odd, 1) * one_over_d;
    row.each([&](int p, int column) {
      float dx[kPiece] = {};
      if (ds_rd) load_piece(ds_rd + begin + column, dx);
      each_of_piece(
          dy_words[p], s_words[p], column, mean, rstd, [&](int i, float, float g, float n) { dx[i] += rstd * (g - mean_g - n * mean_gn); });
      store_piece(dx_rd + begin + column, dx);
    });
  }

  // Calls f(p, i, dy, g, n) for the lane's elements, with g = gain dy and n = (s - mean) rstd.
  template <class F>
  __device__ void each_column(const Row& row, const uint4 (&dy)[kPieces], const uint4 (&s)[kPieces], float mean, float rstd, F f) const {
    row.each([&](int p, int column) {
      each_of_piece(dy[p], s[p], column, mean, rstd, [&](int i, float dy_i, float g, float n) { f(p, i, dy_i, g, n); });
    });
  }
  template <class F>
  __device__ void each_of_piece(const uint4& dy_words, const uint4& s_words, int column, float mean, float rstd, F f) const {
    float dy[kPiece], s[kPiece], gain[kPiece];
    unpack_piece(dy_words, dy);
    unpack_piece(s_words, s);
    load_piece(gain_d + column, gain);
    UNROLL(8)
    for (int i = 0; i < kPiece; ++i) f(i, dy[i], gain[i] * dy[i], (s[i] - mean) * rstd);
  }

  // Sums over the lanes of the row. Two warps exchange their sums in shared memory, at separate addresses for even and odd rows: a warp
  // must not overwrite a sum that the other still reads.
  __device__ static float sum_of_row(float sum, int odd, int which) {
    sum = warp_reduce(sum, Sum{});
    if constexpr (kWarpsOfRow == 1) return sum;
    SHARED(float, of_warp, [2][2][kWarps]);
    const unsigned warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) of_warp[odd][which][warp] = sum;
    __syncthreads();
    return of_warp[odd][which][warp & ~1u] + of_warp[odd][which][warp | 1u];
  }

  // The warps add their sums one after another, in a fixed order.
  __device__ void store_sums(const Sums& sums) const {
    SHARED(float, total, [2][kPieces * kWarpsOfRow * 32 * kPiece]);
    const Row row{0, d};
    for (unsigned warp = 0; warp < kWarps; ++warp) {
      if (threadIdx.x / 32 == warp)
        row.each([&](int p, int column) {
          UNROLL(8)
          for (int i = 0; i < kPiece; ++i)
            for (int k = 0; k < 2; ++k) total[k][column + i] = warp < kWarpsOfRow ? sums[k][p][i] : total[k][column + i] + sums[k][p][i];
        });
      __syncthreads();
    }
    float* const target = partial + blockIdx.x * 2 * d;
    for (int i = static_cast<int>(threadIdx.x); i < d; i += kThreads) {
      target[i] = total[0][i];
      target[d + i] = total[1][i];
    }
  }
};

// Computes dgain and dbias from the sums of the blocks.
struct SumOfBlocks {
  using Value = float;
  static constexpr int kSums = 2;
  const float* partial;
  int64_t d;
  float *dgain_d, *dbias_d;
  HD void add(int64_t block, int64_t i, float (&sum)[2]) const {
    sum[0] += partial[block * 2 * d + i];
    sum[1] += partial[(block * 2 + 1) * d + i];
  }
  HD void store(int64_t i, const float (&sum)[2]) const {
    dgain_d[i] = sum[0];
    if (dbias_d) dbias_d[i] = sum[1];
  }
};

inline bool in_pieces(const Tensor& x, int64_t d, std::initializer_list<const Tensor*> tensors) {
  if (x.dtype() != Dtype::bf16 || x.device() == Device::cpu || d % kPiece || d > 8 * 32 * kPiece) return false;
  return std::all_of(tensors.begin(), tensors.end(), [](const Tensor* t) { return reinterpret_cast<uintptr_t>(t->raw()) % 16 == 0; });
}

HOST bool forward_in_pieces(
    const char* name, const Tensor& x, const Tensor& branch, const Tensor& gain_d, const Tensor& bias_d, double eps, const Normed& out) {
  const int64_t d = gain_d.size(), rows = out.mean_r.size();
  if (!in_pieces(x, d, {&x, &branch, &gain_d, &bias_d, &out.s, &out.y})) return false;
  with_constant<4, 8>(d <= 4 * 32 * kPiece ? 4 : 8, [&]<int kPieces>() {
    launch(name, x.device(), thread_per(rows * 32),
        ForwardKernel<kPieces>{rows, d, x.data<bf16>(), pointer<bf16>(branch), gain_d.data<bf16>(), pointer<bf16>(bias_d),
            out.s.data<bf16>(), out.y.data<bf16>(), out.mean_r.data<float>(), out.rstd_r.data<float>(), static_cast<float>(eps)});
  });
  return true;
}

HOST bool backward_in_pieces(
    const char* name, const Tensor& dy, const Tensor& ds, const Normed& kept, const Tensor& gain_d, const NormGrads& out) {
  const int64_t d = gain_d.size(), rows = kept.mean_r.size();
  const Device device = dy.device();
  if (!in_pieces(kept.s, d, {&dy, &ds, &kept.s, &gain_d, &out.dx})) return false;
  constexpr int64_t kBlocks = 512, kMinRows = 32;
  const int64_t rows_per_block = std::max(kMinRows, (rows + kBlocks - 1) / kBlocks), blocks = (rows + rows_per_block - 1) / rows_per_block;
  const Tensor partial({blocks, 2, d}, Dtype::f32, device);
  float* const sums = partial.data<float>();
  const int64_t pieces = (d + 32 * kPiece - 1) / (32 * kPiece);
  with_constant<1, 2, 3, 4, 6, 8>(pieces > 4 ? (pieces + 1) / 2 * 2 : pieces, [&]<int kPieces>() {
    using Kernel = BackwardKernel<kPieces>;
    launch(name, device, {blocks, Kernel::kThreads},
        Kernel{rows, d, dy.data<bf16>(), pointer<bf16>(ds), kept.s.data<bf16>(), gain_d.data<bf16>(), kept.mean_r.data<float>(),
            kept.rstd_r.data<float>(), out.dx.data<bf16>(), rows_per_block, sums});
  });
  launch(name, device, {(d + 31) / 32, 256},
      ColumnKernel<SumOfBlocks>{blocks, d, blocks, {sums, d, out.dgain_d.data<float>(), pointer<float>(out.dbias_d)}, nullptr});
  return true;
}

}  // namespace layer_norm_kernels

using namespace layer_norm_kernels;

CUDA_KERNEL(ForwardKernel<4>);
CUDA_KERNEL(ForwardKernel<8>);
CUDA_KERNEL(BackwardKernel<1>);
CUDA_KERNEL(BackwardKernel<2>);
CUDA_KERNEL(BackwardKernel<3>);
CUDA_KERNEL(BackwardKernel<4>);
CUDA_KERNEL(BackwardKernel<6>);
CUDA_KERNEL(BackwardKernel<8>);
CUDA_KERNEL(ColumnKernel<SumOfBlocks>);

}  // namespace ricci
