// for_columns(name, device, rows, n, program): sums over the rows of a matrix, one or several at once:
//   sum_k(d) = sum_r of what program.add(r, d, sum) adds,     then program.store(d, sum)
// The rows are summed in chunks of fixed size and the chunks in order, so the bits do not depend on the threads. On the GPU
// a matrix is read once, by enough blocks to fill it: few columns of many rows are cut into many chunks.
// for_rows_and_columns also runs a row program (cuda/verbs/rows.h) for every row. On the CPU a row is then still in the first cache
// when its sums are made.
//   struct Program { using Value = float; static constexpr int kSums = 2;
//                    HD void add(int64_t r, int64_t d, Value (&sum)[2]) const; HD void store(int64_t d, const Value (&sum)[2]) const; };
#pragma once
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "cuda/launch.h"
#include "cuda/verbs/rows.h"

namespace ricci {

// A block sums 32 columns of a chunk of rows; its 8 warps take every eighth row each. `partial` is null: one chunk, all rows.
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
      UNROLL(8)  // so that several rows are on their way from memory
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

// The sums of the chunks, as rows.
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

template <class Program> void for_columns(const char* name, Device device, int64_t rows, int64_t n, const Program& program);
template <class RowProgram, class Program>
void for_rows_and_columns(const char* name, Device device, int64_t rows, int64_t n, const RowProgram& of_row, const Program& program);

#ifndef __CUDACC__

struct NoRowProgram {
  HD void operator()(int64_t, const LoopRow&) const {}
};

template <class RowProgram, class Program> struct ColumnChunk {
  using Value = typename Program::Value;
  RowProgram of_row;
  Program program;
  int64_t rows, n, rows_per_chunk;
  Value* partial;  // [chunk][kSums][n]
  HD void operator()(int64_t begin, int64_t end) const {
    constexpr int kSums = Program::kSums;
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      Value* out = partial + chunk * kSums * n;
      for (int64_t i = 0; i < kSums * n; ++i) out[i] = 0;
      const int64_t last = (chunk + 1) * rows_per_chunk < rows ? (chunk + 1) * rows_per_chunk : rows;
      for (int64_t r = chunk * rows_per_chunk; r < last; ++r) {
        of_row(r, LoopRow{n});
#pragma omp simd
        for (int64_t d = 0; d < n; ++d) {
          Value sum[kSums];
          for (int k = 0; k < kSums; ++k) sum[k] = out[k * n + d];
          program.add(r, d, sum);
          for (int k = 0; k < kSums; ++k) out[k * n + d] = sum[k];
        }
      }
    }
  }
};

template <class Program> struct ColumnTotal {
  using Value = typename Program::Value;
  Program program;
  int64_t n, chunks;
  Value* partial;
  HD void operator()(int64_t begin, int64_t end) const {
    constexpr int kSums = Program::kSums;
#pragma omp simd
    for (int64_t d = begin; d < end; ++d) {
      Value sum[kSums];
      for (int k = 0; k < kSums; ++k) {
        sum[k] = 0;
        for (int64_t chunk = 0; chunk < chunks; ++chunk) sum[k] += partial[(chunk * kSums + k) * n + d];
      }
      program.store(d, sum);
    }
  }
};

// At least 256 rows per chunk, and enough chunks that chunks x blocks of columns fill a GPU.
template <class Program> void for_columns_on_gpu(const char* name, Device device, int64_t rows, int64_t n, const Program& program) {
  using Value = typename Program::Value;
  constexpr int64_t kBlocks = 2048, kMin = 256;
  const int64_t blocks = (n + 31) / 32, wanted = blocks ? (kBlocks + blocks - 1) / blocks : 1, most = (rows + kMin - 1) / kMin;
  const int64_t chunks = wanted < most ? wanted : most;
  if (chunks <= 1) return launch(name, device, {blocks, 256}, ColumnKernel<Program>{rows, n, rows, program, nullptr});
  const Tensor partial({chunks, Program::kSums, n}, dtype_of<Value>, device);
  Value* const sums = partial.data<Value>();
  launch(name, device, {chunks * blocks, 256}, ColumnKernel<Program>{rows, n, (rows + chunks - 1) / chunks, program, sums});
  launch(name, device, {blocks, 256}, ColumnKernel<PartialColumns<Program>>{chunks, n, chunks, {program, sums, n}, nullptr});
}

template <class RowProgram, class Program>
void for_columns_on_cpu(int64_t rows, int64_t n, const RowProgram& of_row, const Program& program) {
  using Value = typename Program::Value;
  const int64_t rows_per_chunk = rows / 32 > 32 ? rows / 32 : 32, chunks = (rows + rows_per_chunk - 1) / rows_per_chunk;
  const Tensor partial({chunks, Program::kSums, n}, dtype_of<Value>);
  parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
    run_vectorized(ColumnChunk<RowProgram, Program>{of_row, program, rows, n, rows_per_chunk, partial.data<Value>()}, begin, end);
  });
  parallel_for(n, 1024, [&](int64_t begin, int64_t end) {
    run_vectorized(ColumnTotal<Program>{program, n, chunks, partial.data<Value>()}, begin, end);
  });
}

template <class Program> void for_columns(const char* name, Device device, int64_t rows, int64_t n, const Program& program) {
  if (device == Device::cpu) for_columns_on_cpu(rows, n, NoRowProgram{}, program);
  else for_columns_on_gpu(name, device, rows, n, program);
}

template <class RowProgram, class Program>
void for_rows_and_columns(const char* name, Device device, int64_t rows, int64_t n, const RowProgram& of_row, const Program& program) {
  if (device == Device::cpu) return for_columns_on_cpu(rows, n, of_row, program);
  for_rows(name, device, rows, n, of_row);
  for_columns_on_gpu(name, device, rows, n, program);
}

#endif

// Builds a column program for the GPU; F<float>, F<double> and F<bf16>.
#define CUDA_COLUMN(...)                  \
  CUDA_KERNEL(ColumnKernel<__VA_ARGS__>); \
  CUDA_KERNEL(ColumnKernel<PartialColumns<__VA_ARGS__>>)
#define CUDA_COLUMNS(F)   \
  CUDA_COLUMN(F<float>);  \
  CUDA_COLUMN(F<double>); \
  CUDA_COLUMN(F<bf16>)

}  // namespace ricci
