// The work on one block of 64 rows by 64 columns on a GPU: 128 threads, 16 to a row; thread (ty, tx) has the rows ty + 8 i
// and the columns tx + 16 j. Matrices pass through shared memory in pieces of 32 columns, so that any width fits.
#pragma once
#include "core/tensor.h"
#include "cuda/seam.h"
#include "ops/attention/band.h"

namespace ricci::attention_kernels {

constexpr int kGpuThreads = 128, kGpuBlock = 64, kPiece = 32;
constexpr int kThreadRows = 8, kThreadColumns = 4;                     // of a block of scores
constexpr int kPiecePitch = kPiece + 4, kScorePitch = kGpuBlock + 16;  // row lengths that spread the rows over the banks

// n neighbouring numbers, moved at once.
template <class A, int n> struct alignas(n * sizeof(A) < 16 ? n * sizeof(A) : 16) Few { A at[n]; };
template <int n, class A> __device__ inline Few<A, n> load(const A* from) { return *reinterpret_cast<const Few<A, n>*>(from); }

__device__ inline int thread_row(int i) { return static_cast<int>(threadIdx.x) / 16 + 8 * i; }
__device__ inline int thread_column(int j) { return static_cast<int>(threadIdx.x) % 16 + 16 * j; }

// What a kernel keeps in shared memory: two pieces of 64 x 32 (or one of 32 x 128, 64 x 64, 64 x 32), and a block of weights.
template <class A> struct SharedBlocks {
  static constexpr int kPieces = 2 * kGpuBlock * kPiecePitch, kBytes = (kPieces + kGpuBlock * kScorePitch) * static_cast<int>(sizeof(A));
  A *a, *b, *weights;
  __device__ static SharedBlocks get() {
    A* const all = dynamic_shared<A>();
    return {all, all + kGpuBlock * kPiecePitch, all + kPieces};
  }
  __device__ A& weight(int i, int j) const { return weights[thread_row(i) * kScorePitch + thread_column(j)]; }  // the thread's own
};

// Rows x Columns of `from` times factor, zero outside rows x columns.
template <int Rows, int Columns, int Pitch, class T, class A>
__device__ inline void stage(A* to, const T* from, int64_t from_row, int64_t rows, int64_t columns, A factor) {
  UNROLL(8)
  for (int n = 0; n < Rows * Columns / kGpuThreads; ++n) {
    const int i = n * kGpuThreads + static_cast<int>(threadIdx.x), r = i / Columns, x = i % Columns;
    to[r * Pitch + x] = r < rows && x < columns ? A(from[r * from_row + x]) * factor : A(0);
  }
}

template <class T> struct Rows {
  const T* data;
  int64_t row, rows;
  Accumulator<T> factor;  // of every element
};

// sum_ij = a_i . b_j of the thread's rows and columns.
template <class T, class A>
__device__ inline void scores(const Rows<T>& a, const Rows<T>& b, int64_t width, const SharedBlocks<A>& shared,
                              A (&sum)[kThreadRows][kThreadColumns]) {
  for (int i = 0; i < kThreadRows; ++i)
    for (int j = 0; j < kThreadColumns; ++j) sum[i][j] = 0;
  for (int64_t x = 0; x < width; x += kPiece) {
    __syncthreads();  // the pieces before have been read
    stage<kGpuBlock, kPiece, kPiecePitch>(shared.a, a.data + x, a.row, a.rows, width - x, a.factor);
    stage<kGpuBlock, kPiece, kPiecePitch>(shared.b, b.data + x, b.row, b.rows, width - x, b.factor);
    __syncthreads();
    UNROLL(1)
    for (int p = 0; p < kPiece; p += 4) {
      Few<A, 4> b_j[kThreadColumns];
      for (int j = 0; j < kThreadColumns; ++j) b_j[j] = load<4>(shared.b + thread_column(j) * kPiecePitch + p);
      for (int i = 0; i < kThreadRows; ++i) {
        const auto a_i = load<4>(shared.a + thread_row(i) * kPiecePitch + p);
        for (int j = 0; j < kThreadColumns; ++j)
          for (int q = 0; q < 4; ++q) sum[i][j] += a_i.at[q] * b_j[j].at[q];
      }
    }
  }
}

// The output columns of a kernel: kWidth of them, of which a thread has kWidth / 16, in runs of neighbours.
template <int kWidth> struct OutputColumns {
  static constexpr int kOfThread = kWidth / 16, kRun = kOfThread < 4 ? kOfThread : 4;
  static constexpr int kPitch = kWidth + 4, kRows = kWidth > kGpuBlock ? kGpuBlock / 2 : kGpuBlock;  // of a staged piece
  __device__ static int of(int c) { return c / kRun * 16 * kRun + static_cast<int>(threadIdx.x) % 16 * kRun + c % kRun; }
};

// The thread's rows of o_ix += sum_j weights_ij b_jx, for the columns x < kWidth that b starts with (`columns` of them exist).
template <int kWidth, class T, class A>
__device__ inline void add_weighted(const Rows<T>& b, int64_t columns, const SharedBlocks<A>& shared, A (&o)[kThreadRows][kWidth / 16]) {
  using Output = OutputColumns<kWidth>;
  static_assert(Output::kRows * Output::kPitch <= SharedBlocks<A>::kPieces);
  for (int first = 0; first < kGpuBlock; first += Output::kRows) {
    __syncthreads();  // the weights have been written, the pieces before have been read
    stage<Output::kRows, kWidth, Output::kPitch>(shared.a, b.data + first * b.row, b.row, b.rows - first, columns, b.factor);
    __syncthreads();
    UNROLL(1)
    for (int j = 0; j < Output::kRows; j += 4) {
      Few<A, 4> w_i[kThreadRows];
      for (int i = 0; i < kThreadRows; ++i) w_i[i] = load<4>(shared.weights + thread_row(i) * kScorePitch + first + j);
      for (int q = 0; q < 4; ++q)
        for (int c = 0; c < Output::kOfThread; c += Output::kRun) {
          const auto b_x = load<Output::kRun>(shared.a + (j + q) * Output::kPitch + Output::of(c));
          for (int i = 0; i < kThreadRows; ++i)
            for (int x = 0; x < Output::kRun; ++x) o[i][c + x] += w_i[i].at[q] * b_x.at[x];
        }
    }
  }
}

// to_ix = factor_i o_ix
template <int kWidth, class T, class A, class Factor>
__device__ inline void store(const A (&o)[kThreadRows][kWidth / 16], T* to, int64_t row, int64_t rows, int64_t columns, Factor factor) {
  for (int i = 0; i < kThreadRows; ++i)
    for (int c = 0; c < kWidth / 16; ++c) {
      const int r = thread_row(i), x = OutputColumns<kWidth>::of(c);
      if (r < rows && x < columns) to[r * row + x] = T(o[i][c] * factor(i));
    }
}

// The block of weights, from what each thread has of it.
template <class A> __device__ inline void store_weights(const A (&w)[kThreadRows][kThreadColumns], const SharedBlocks<A>& shared) {
  for (int i = 0; i < kThreadRows; ++i)
    for (int j = 0; j < kThreadColumns; ++j) shared.weight(i, j) = w[i][j];
}

// In place of the weights, what dropout multiplies them by: of queries t0 .. and keys s0 .., t_pitch and s_pitch apart. Four
// neighbouring keys share a block of random numbers; where a query's keys begin within such a block differs.
template <class A>
__device__ inline void stage_factors(const Problem& problem, int64_t head, int64_t t0, int64_t s0, int t_pitch, int s_pitch, A* to) {
  constexpr int kBlocks = kGpuBlock / 4 + 1;
  const Philox random = problem.dropout.random.philox();
  UNROLL(1)
  for (int n = static_cast<int>(threadIdx.x); n < kGpuBlock * kBlocks; n += kGpuThreads) {
    const int t = n / kBlocks, q = n % kBlocks;
    const int64_t first = problem.dropout.row(head, t0 + t, problem.context) + s0;
    const Philox::Block words = random.block(static_cast<uint64_t>(first / 4 + q));
    for (int word = 0; word < 4; ++word) {
      const int s = 4 * q + word - static_cast<int>(first % 4);
      if (s >= 0 && s < kGpuBlock)
        to[t * t_pitch + s * s_pitch] = words.v[word] < problem.dropout.dropped_below ? A(0) : A(problem.dropout.scale);
    }
  }
}

// op over the 16 threads that share a row.
template <class A, class Op> __device__ inline A row_reduce(A value, Op op) {
  for (int distance = 8; distance > 0; distance /= 2) value = op(value, __shfl_xor_sync(~0u, value, distance));
  return value;
}

}  // namespace ricci::attention_kernels
