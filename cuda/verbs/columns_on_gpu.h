// for_columns on the GPU (cuda/verbs/columns.h): both steps are launches of ColumnKernel. Step 1 sums the rows of each chunk, and step 2
// adds the sums of the chunks. With few columns and many rows, one block for each 32 columns would leave most of the GPU idle.
#pragma once
#include "core/tensor.h"
#include "cuda/launch.h"

namespace ricci {

// A block sums 32 columns of a chunk of rows; each of its 8 warps uses every eighth row. With only one chunk, `partial` is null and the
// sums are stored immediately.
template <class Program> struct ColumnKernel {
  using Value = typename Program::Value;
  static constexpr int kThreads = 256;
  int64_t rows, n, rows_per_chunk;
  Program program;
  Value* partial;  // [chunk][kSums][n]
  __device__ void operator()() const {
    constexpr int kSums = Program::kSums;
    SHARED(Value, of_warp, [8][kSums][32]);
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    const int64_t blocks = (n + 31) / 32, chunk = blockIdx.x / blocks, d = blockIdx.x % blocks * 32 + lane;
    const int64_t first = chunk * rows_per_chunk, last = first + rows_per_chunk < rows ? first + rows_per_chunk : rows;
    Value sum[kSums] = {};
    if (d < n) {
      UNROLL(8)  // memory is fastest with more than one load in flight
      for (int64_t r = first + warp; r < last; r += 8) program.add(r, d, sum);
    }
    for (int k = 0; k < kSums; ++k) of_warp[warp][k][lane] = sum[k];
    __syncthreads();
    if (warp > 0 || d >= n) return;
    for (int w = 1; w < 8; ++w)
      for (int k = 0; k < kSums; ++k) sum[k] += of_warp[w][k][lane];
    if (!partial) return program.store(d, sum);
    for (int k = 0; k < kSums; ++k) partial[(chunk * kSums + k) * n + d] = sum[k];
  }
};

// Step 2 as a program: its rows are the chunks.
template <class Program> struct PartialColumns {
  using Value = typename Program::Value;
  static constexpr int kSums = Program::kSums;
  Program program;
  const Value* partial;
  int64_t n;
  HD void add(int64_t chunk, int64_t d, Value (&sum)[kSums]) const {
    for (int k = 0; k < kSums; ++k) sum[k] += partial[(chunk * kSums + k) * n + d];
  }
  HD void store(int64_t d, const Value (&sum)[kSums]) const { program.store(d, sum); }
};

#ifndef __CUDACC__

// A chunk has at least 256 rows. There are enough chunks to fill a GPU with chunks x blocks of columns and to keep the sum of a warp short.
template <class Program> void for_columns_on_gpu(const char* name, Device device, int64_t rows, int64_t n, const Program& program) {
  using Value = typename Program::Value;
  constexpr int64_t kBlocks = 2048, kMin = 256, kMax = 65536;
  const int64_t blocks = (n + 31) / 32, wanted = blocks ? (kBlocks + blocks - 1) / blocks : 1, most = (rows + kMin - 1) / kMin;
  const int64_t chunks = max(min(wanted, most), rows / kMax);
  if (chunks <= 1) return launch(name, device, {blocks, 256}, ColumnKernel<Program>{rows, n, rows, program, nullptr});
  const Tensor partial({chunks, Program::kSums, n}, dtype_of<Value>, device);
  Value* const sums = partial.data<Value>();
  launch(name, device, {chunks * blocks, 256}, ColumnKernel<Program>{rows, n, (rows + chunks - 1) / chunks, program, sums});
  launch(name, device, {blocks, 256}, ColumnKernel<PartialColumns<Program>>{chunks, n, chunks, {program, sums, n}, nullptr});
}

#endif

}  // namespace ricci
