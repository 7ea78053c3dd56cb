// for_columns(name, device, rows, n, program): for each column d of a matrix, sums over its rows. The gradients of a bias and of a gain,
// for example, are such sums. A program can compute kSums sums of a column together, in one pass over the matrix:
//   struct Program { using Value = float; static constexpr int kSums = 2;
//                    HD void add(int64_t r, int64_t d, Value (&sum)[2]) const;             adds row r to the sums of column d
//                    HD void store(int64_t d, const Value (&sum)[2]) const; };             stores the sums over all rows
//
// The rows are split into chunks. Step 1 sums each chunk, all chunks at the same time. Step 2 adds the sums of the chunks in order:
//   1. partial[0][d] = rows 0 .. 31,   partial[1][d] = rows 32 .. 63,   ...
//   2. store(d, partial[0][d] + partial[1][d] + ...)
// The size of a chunk depends only on the number of rows. A sum of floats depends on the order of its terms. With a chunk per CPU thread,
// the results would change with the number of threads. The GPU does the same two steps, as two launches of one kernel
// (cuda/verbs/columns_on_gpu.h).
#pragma once
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "cuda/verbs/columns_on_gpu.h"
#include "cuda/verbs/rows.h"

namespace ricci {

#ifndef __CUDACC__

// ---- On the CPU. partial [chunk][kSums][n]

// Step 1. for_rows_and_columns also runs a row program for each row.
template <class RowProgram, class Program> struct ColumnChunk {
  using Value = typename Program::Value;
  RowProgram row_program;
  Program program;
  int64_t rows, n, rows_per_chunk;
  Value* partial;
  HD void operator()(int64_t begin, int64_t end) const {
    constexpr int kSums = Program::kSums;
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      Value* out = partial + chunk * kSums * n;
      for (int64_t i = 0; i < kSums * n; ++i) out[i] = 0;
      const int64_t last = (chunk + 1) * rows_per_chunk < rows ? (chunk + 1) * rows_per_chunk : rows;
      for (int64_t r = chunk * rows_per_chunk; r < last; ++r) {
        row_program(r, LoopRow{n});
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

// Step 2, for the columns from begin to end.
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

template <class RowProgram, class Program>
void for_columns_on_cpu(int64_t rows, int64_t n, const RowProgram& row_program, const Program& program) {
  using Value = typename Program::Value;
  constexpr int64_t kLongest = 8192;  // terms of a partial sum; a longer one would have larger rounding errors
  const int64_t rows_per_chunk = between<int64_t>(32, rows / 32, kLongest), chunks = (rows + rows_per_chunk - 1) / rows_per_chunk;
  const Tensor partial({chunks, Program::kSums, n}, dtype_of<Value>);
  parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
    run_vectorized(ColumnChunk<RowProgram, Program>{row_program, program, rows, n, rows_per_chunk, partial.data<Value>()}, begin, end);
  });
  parallel_for(n, 1024, [&](int64_t begin, int64_t end) {
    run_vectorized(ColumnTotal<Program>{program, n, chunks, partial.data<Value>()}, begin, end);
  });
}

#endif

// ---- The verbs

template <class Program> void for_columns(const char* name, Device device, int64_t rows, int64_t n, const Program& program);

// Also runs a row program (cuda/verbs/rows.h) for every row. On the CPU, a row is still in the L1 cache when it is added.
template <class RowProgram, class Program>
void for_rows_and_columns(const char* name, Device device, int64_t rows, int64_t n, const RowProgram& row_program, const Program& program);

#ifndef __CUDACC__

struct NoRowProgram {
  HD void operator()(int64_t, const LoopRow&) const {}
};

template <class Program> void for_columns(const char* name, Device device, int64_t rows, int64_t n, const Program& program) {
  if (device == Device::cpu) for_columns_on_cpu(rows, n, NoRowProgram{}, program);
  else for_columns_on_gpu(name, device, rows, n, program);
}

template <class RowProgram, class Program>
void for_rows_and_columns(const char* name, Device device, int64_t rows, int64_t n, const RowProgram& row_program, const Program& program) {
  if (device == Device::cpu) return for_columns_on_cpu(rows, n, row_program, program);
  for_rows(name, device, rows, n, row_program);
  for_columns_on_gpu(name, device, rows, n, program);
}

#endif

// Builds a column program for the GPU, or F<float>, F<double> and F<bf16>.
#define CUDA_COLUMN(...)                  \
  CUDA_KERNEL(ColumnKernel<__VA_ARGS__>); \
  CUDA_KERNEL(ColumnKernel<PartialColumns<__VA_ARGS__>>)
#define CUDA_COLUMNS(F)   \
  CUDA_COLUMN(F<float>);  \
  CUDA_COLUMN(F<double>); \
  CUDA_COLUMN(F<bf16>)

}  // namespace ricci
