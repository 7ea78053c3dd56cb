// The work of a thread block on one block of 64 rows by 64 columns: 128 threads, 16 per row; thread (ty, tx) has the rows ty + 8 i and the
// columns tx + 16 j. Matrices pass through shared memory in parts of 32 columns, to support wide heads.
#pragma once
#include "core/tensor.h"
#include "cuda/seam.h"
#include "ops/attention/kernels.h"

namespace ricci::attention_kernels {

constexpr int kGpuThreads = 128, kGpuBlock = 64, kPiece = 32;
constexpr int kThreadRows = 8, kThreadColumns = 4;                     // in a block of scores
constexpr int kPiecePitch = kPiece + 4, kScorePitch = kGpuBlock + 16;  // row lengths that spread the rows over the banks

// n contiguous elements, loaded together.
template <class A, int n> struct alignas(n * sizeof(A) < 16 ? n * sizeof(A) : 16) Few { A element[n]; };
template <int n, class A> __device__ inline Few<A, n> load(const A* source) { return *reinterpret_cast<const Few<A, n>*>(source); }

__device__ inline int thread_row(int i) { return static_cast<int>(threadIdx.x) / 16 + 8 * i; }
__device__ inline int thread_column(int j) { return static_cast<int>(threadIdx.x) % 16 + 16 * j; }

// Shared memory of a kernel: two parts of 64 x 32 for scores, later one part of 32 x 128, 64 x 64 or 64 x 32 for weighted sums; and a block
// of weights.
template <class A> struct SharedBlocks {
  static constexpr int kPieces = 2 * kGpuBlock * kPiecePitch, kBytes = (kPieces + kGpuBlock * kScorePitch) * static_cast<int>(sizeof(A));
  A *a, *b, *weights;
  __device__ static SharedBlocks get() {
    A* const all = dynamic_shared<A>();
    return {all, all + kGpuBlock * kPiecePitch, all + kPieces};
  }
  // The weight of the thread's own row i and column j.
  __device__ A& weight(int i, int j) const { return weights[thread_row(i) * kScorePitch + thread_column(j)]; }
};

// Copies kRows x kColumns elements, multiplied by a factor, into rows of kPitch elements, with zeros outside rows x columns.
template <int kRows, int kColumns, int kPitch, class T, class A>
__device__ inline void stage(A* target, const T* source, int64_t source_row, int64_t rows, int64_t columns, A factor) {
  UNROLL(8)
  for (int n = 0; n < kRows * kColumns / kGpuThreads; ++n) {
    const int i = n * kGpuThreads + static_cast<int>(threadIdx.x), r = i / kColumns, x = i % kColumns;
    target[r * kPitch + x] = r < rows && x < columns ? A(source[r * source_row + x]) * factor : A(0);
  }
}

// The rows of one head from a given position to the last.
template <class T> struct Matrix {
  const T* data;
  int64_t row, rows;      // the distance between rows, and the number of rows
  Accumulator<T> factor;  // multiplies every element
  __device__ Matrix columns_from(int64_t x) const { return {data + x, row, rows, factor}; }
};
template <class T>
__device__ inline Matrix<T> matrix(
    const Problem& problem, const HeadRows<const T>& rows, int64_t head, int64_t first, int64_t end, Accumulator<T> factor) {
  return {rows.of_head(problem, head) + first * rows.row, rows.row, end - first, factor};
}

// The visible pairs among the 64 queries from t0 on and the 64 keys from j0 on, with indices relative to t0 and j0; only the first `keys`
// keys exist. To save registers, distances relative to the block are ints (a cell has at most 2^24 tokens), and nothing is divided.
struct BlockMask {
  int cell, least, most, keys;
  __device__ BlockMask(const Problem& problem, int64_t t0, int64_t j0, int64_t all_keys)
      : cell(static_cast<int>(problem.sees.cell)),
        least(bounded(problem.sees.least - (t0 - problem.sees.cell * j0))),
        most(bounded(problem.sees.most - (t0 - problem.sees.cell * j0))),
        keys(bounded(all_keys - j0)) {}
  __device__ bool visible(int query, int key) const {
    const int back = query - cell * key;
    return back >= least && back < most && key < keys;
  }
};

// sum_ij = a_i . b_j for the thread's rows and columns.
template <class T, class A>
__device__ inline void scores(
    const Matrix<T>& a, const Matrix<T>& b, int64_t width, const SharedBlocks<A>& shared, A (&sum)[kThreadRows][kThreadColumns]) {
  for (int i = 0; i < kThreadRows; ++i)
    for (int j = 0; j < kThreadColumns; ++j) sum[i][j] = 0;
  for (int64_t x = 0; x < width; x += kPiece) {
    __syncthreads();  // the previous parts have been read
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
          for (int q = 0; q < 4; ++q) sum[i][j] += a_i.element[q] * b_j[j].element[q];
      }
    }
  }
}

// The kWidth output columns of a kernel. A thread has kWidth / 16 of them, in runs of adjacent columns.
template <int kWidth> struct OutputColumns {
  static constexpr int kOfThread = kWidth / 16, kRun = kOfThread < 4 ? kOfThread : 4;
  static constexpr int kPitch = kWidth + 4, kRows = kWidth > kGpuBlock ? kGpuBlock / 2 : kGpuBlock;  // rows in shared memory
  __device__ static int column(int c) { return c / kRun * 16 * kRun + static_cast<int>(threadIdx.x) % 16 * kRun + c % kRun; }
};

// o_ix += sum_j weights_ij b_jx for the thread's rows i and the first kWidth columns x of b (`columns` of them exist).
template <int kWidth, class T, class A>
__device__ inline void add_weighted(const Matrix<T>& b, int64_t columns, const SharedBlocks<A>& shared, A (&o)[kThreadRows][kWidth / 16]) {
  using Output = OutputColumns<kWidth>;
  static_assert(Output::kRows * Output::kPitch <= SharedBlocks<A>::kPieces);
  for (int first = 0; first < kGpuBlock; first += Output::kRows) {
    __syncthreads();  // the weights have been written; the previous parts have been read
    stage<Output::kRows, kWidth, Output::kPitch>(shared.a, b.data + first * b.row, b.row, b.rows - first, columns, b.factor);
    __syncthreads();
    UNROLL(1)
    for (int j = 0; j < Output::kRows; j += 4) {
      Few<A, 4> w_i[kThreadRows];
      for (int i = 0; i < kThreadRows; ++i) w_i[i] = load<4>(shared.weights + thread_row(i) * kScorePitch + first + j);
      for (int q = 0; q < 4; ++q)
        for (int c = 0; c < Output::kOfThread; c += Output::kRun) {
          const auto b_x = load<Output::kRun>(shared.a + (j + q) * Output::kPitch + Output::column(c));
          for (int i = 0; i < kThreadRows; ++i)
            for (int x = 0; x < Output::kRun; ++x) o[i][c + x] += w_i[i].element[q] * b_x.element[x];
        }
    }
  }
}

// to_ix = factor_i o_ix; with `add`, to_ix += instead.
template <int kWidth, class T, class A, class Factor>
__device__ inline void store(
    const A (&o)[kThreadRows][kWidth / 16], T* target, int64_t row, int64_t rows, int64_t columns, Factor factor, bool add = false) {
  for (int i = 0; i < kThreadRows; ++i)
    for (int c = 0; c < kWidth / 16; ++c) {
      const int r = thread_row(i), x = OutputColumns<kWidth>::column(c);
      if (r < rows && x < columns) target[r * row + x] = T(o[i][c] * factor(i) + (add ? A(target[r * row + x]) : A(0)));
    }
}

template <class A> __device__ inline void store_weights(const A (&w)[kThreadRows][kThreadColumns], const SharedBlocks<A>& shared) {
  for (int i = 0; i < kThreadRows; ++i)
    for (int j = 0; j < kThreadColumns; ++j) shared.weight(i, j) = w[i][j];
}

// Writes the factors of dropout to `target`, for the queries t0 .. t0 + 63 and the keys j0 .. j0 + 63 at distances of t_pitch and j_pitch.
// A block of the random generator contains the numbers of four adjacent keys; a query's keys can start anywhere in it.
template <class A>
__device__ inline void stage_factors(const Problem& problem, int64_t head, int64_t t0, int64_t j0, int t_pitch, int j_pitch, A* target) {
  constexpr int kBlocks = kGpuBlock / 4 + 1;
  const Philox random = problem.dropout.random.philox();
  UNROLL(1)
  for (int n = static_cast<int>(threadIdx.x); n < kGpuBlock * kBlocks; n += kGpuThreads) {
    const int t = n / kBlocks, q = n % kBlocks;
    const int64_t first = problem.weight(head, t0 + t) + j0;
    const Philox::Block words = random.block(static_cast<uint64_t>(first / 4 + q));
    for (int word = 0; word < 4; ++word) {
      const int j = 4 * q + word - static_cast<int>(first % 4);
      if (j >= 0 && j < kGpuBlock)
        target[t * t_pitch + j * j_pitch] = words.v[word] < problem.dropout.dropped_below ? A(0) : A(problem.dropout.keep_factor);
    }
  }
}

// Reduces over the 16 threads that share a row.
template <class A, class Op> __device__ inline A row_reduce(A value, Op op) {
  for (int distance = 8; distance > 0; distance /= 2) value = op(value, __shfl_xor_sync(~0u, value, distance));
  return value;
}

}  // namespace ricci::attention_kernels
