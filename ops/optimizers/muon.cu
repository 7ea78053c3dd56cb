// Muon (Jordan et al. 2024): the update of a matrix is its momentum u with singular values close to 1. With u = U S V^T the update is about
// U V^T, so directions with a small gradient change as much as the others. Newton-Schulz steps compute U V^T without a decomposition:
//   X = u / |u|_F;    ns_steps times   A = X X^T,  X = p(A) X,   p(A) = 3.4445 I - 4.7750 A + 2.0315 A^2
// A singular value s becomes p(s^2) s. Five steps map all s in 0.003 .. 1 to 0.68 .. 1.20. For a matrix with more rows than columns,
// A = X^T X and X = X p(A), with a smaller A. Matrices of equal shape are computed in batches.
//   FLOPs   5 (4 m^2 n + 2 m^3) for a matrix with sides m <= n; bytes 36 m n, and the products
//   floor   124 million, 12 layers of d 768, in f32 on an H200: 1.6 TFLOP at 67 TFLOP/s 24 ms
#include "ops/optimizers/muon.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/dims.h"
#include "core/error.h"
#include "cuda/gemm/gemm.h"
#include "cuda/math.h"
#include "cuda/verbs/chunks.h"
#include "cuda/verbs/pieces.h"

namespace ricci {
namespace muon_kernels {

inline constexpr int64_t kNormChunk = 16384;            // elements of one partial sum of squares
inline constexpr int64_t kTogether = int64_t{1} << 18;  // about this many elements in a batch of matrices: 1 MB in f32

// One matrix of n elements, the i-th of its batch.
template <class T> struct MatrixItem {
  using A = Accumulator<T>;
  T* value;
  A *master, *m;
  const A* grad;
  int64_t n;
  double weight_decay, lr_factor;
  int64_t i = 0;
};

// Writes m and u, and the sum of u^2 of each chunk.
template <class T> struct Momentum {
  using A = Accumulator<T>;
  using Item = MatrixItem<T>;
  static constexpr int64_t kBlockChunk = kNormChunk, kLoopChunk = kNormChunk;
  A rate;  // 1 - momentum
  bool nesterov;
  const double* gradient_scale;
  A* u;
  double* squares;
  int64_t chunks;  // in a matrix

  template <class Row> HD void operator()(const Item& t, int64_t begin, Row row) const {
    const A scale = static_cast<A>(*gradient_scale), *const grad = t.grad + begin;
    A *const m = t.m + begin, *const u_here = u + t.i * t.n + begin;
    double* const sum_here = squares + t.i * chunks + begin / kNormChunk;
    if (!math::isfinite(*gradient_scale)) {  // the products run in any case, here on zeros
      row.each([&](int64_t i) { u_here[i] = 0; });
      return row.once([&] { *sum_here = 0; });
    }
    const double sum = row.sum([&](int64_t i) {
      const A g = grad[i] * scale, mean = m[i] + rate * (g - m[i]), next = nesterov ? mean + rate * (g - mean) : mean;
      m[i] = mean;
      u_here[i] = next;
      return static_cast<double>(next) * static_cast<double>(next);
    });
    row.once([&] { *sum_here = sum; });
  }
};

// Divides a row of u by the norm of its matrix.
template <class A> struct Normalize {
  A* u;
  const double* squares;
  int64_t rows, columns, chunks;  // in a matrix
  template <class Row> HD void operator()(int64_t r, Row row) const {
    double sum = 0;
    for (int64_t i = 0; i < chunks; ++i) sum += squares[r / rows * chunks + i];
    const A factor = A(1 / max(math::sqrt(sum), 1e-7));
    A* const u_c = u + r * columns;
    row.each([&](int64_t c) { u_c[c] *= factor; });
  }
};

// Overwrites a row of A^2 with p(A).
template <class A> struct Polynomial {
  const A* gram;
  A* square;
  int64_t m;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    const A* const gram_c = gram + r * m;
    A* const square_c = square + r * m;
    row.each([&](int64_t c) { square_c[c] = A(-4.7750) * gram_c[c] + A(2.0315) * square_c[c]; });
    row.once([&] { square_c[r % m] += A(3.4445); });
  }
};

template <class T> struct Apply {
  using A = Accumulator<T>;
  using Item = MatrixItem<T>;
  static constexpr int64_t kBlockChunk = 4096, kLoopChunk = 32768;
  const Rates* rates;
  const double* gradient_scale;
  const A* x;
  double adjusted;

  template <class Row> HD void operator()(const Item& t, int64_t begin, Row row) const {
    if (!math::isfinite(*gradient_scale)) return;
    const double lr = rates->learning_rate * t.lr_factor;
    const A shrink = A(1 - lr * t.weight_decay), step = A(lr * adjusted);
    const A* const x_matrix = x + t.i * t.n;
    row.each_piece(
        [&](auto in_chunk) {
          const auto piece = in_chunk.from(begin);
          const auto w = (t.master ? piece.load(t.master) : piece.load(t.value)) * shrink - step * piece.load(x_matrix);
          if (t.master) piece.store(t.master, w);
          piece.store(t.value, w);
        },
        t.value, t.master, x_matrix);
  }
};

// The matrix products c = a b of a batch.
HOST void multiply(const Tensor& c_imn, const Tensor& a, const MatrixAt& a_at, const Tensor& b, const MatrixAt& b_at) {
  const int64_t count = c_imn.shape()[0], m = c_imn.shape()[1], n = c_imn.shape()[2];
  // clang-format off
  gemm({.device = c_imn.device(), .dtype = c_imn.dtype(), .batch = count, .m = m, .n = n, .k = a.size() / (count * m), .a = a.raw(),
        .b = b.raw(), .a_at = a_at, .b_at = b_at, .c = c_imn.raw(), .c_at = {n, 1, m * n}});
  // clang-format on
}

// Runs the Newton-Schulz steps. x_irc is overwritten.
template <class A> Tensor orthogonalized(Tensor x_irc, int64_t steps) {
  const int64_t count = x_irc.shape()[0], rows = x_irc.shape()[1], columns = x_irc.shape()[2], m = std::min(rows, columns);
  const bool tall = rows > columns;
  const MatrixAt x_at{columns, 1, rows * columns}, transposed{1, columns, rows * columns}, square_at{m, 1, m * m};
  const Tensor gram_imm = like(x_irc, {count, m, m}), square_imm = like(gram_imm);
  Tensor next_irc = like(x_irc);
  for (int64_t step = 0; step < steps; ++step) {
    multiply(gram_imm, x_irc, tall ? transposed : x_at, x_irc, tall ? x_at : transposed);
    multiply(square_imm, gram_imm, square_at, gram_imm, square_at);
    for_rows("muon", x_irc.device(), count * m, m, Polynomial<A>{gram_imm.data<A>(), square_imm.data<A>(), m});
    if (tall) multiply(next_irc, x_irc, x_at, square_imm, square_at);
    else multiply(next_irc, square_imm, square_at, x_irc, x_at);
    std::swap(x_irc, next_irc);
  }
  return x_irc;
}

template <class T>
void update_batch(std::vector<MatrixItem<T>> items, int64_t rows, int64_t columns, const Muon& options, const StepNumbers& now) {
  using A = Accumulator<T>;
  const int64_t count = static_cast<int64_t>(items.size()), chunks = (rows * columns + kNormChunk - 1) / kNormChunk;
  for (int64_t i = 0; i < count; ++i) items[static_cast<size_t>(i)].i = i;
  const Device device = now.rates.device();
  const double* const scale = now.gradient_scale.data<double>();
  const Tensor u_irc({count, rows, columns}, dtype_of<A>, device), squares({count, chunks}, Dtype::f64, device);
  A* const u = u_irc.data<A>();
  double* const sums = squares.data<double>();
  for_each_chunk("muon", device, items, Momentum<T>{A(1 - options.momentum), options.nesterov, scale, u, sums, chunks});
  for_rows("muon", device, count * rows, columns, Normalize<A>{u, sums, rows, columns, chunks});
  const Tensor x_irc = orthogonalized<A>(u_irc, options.ns_steps);
  const double r = static_cast<double>(rows), c = static_cast<double>(columns);
  const double adjusted = options.adjust_lr == AdjustLr::original ? std::sqrt(std::max(1.0, r / c)) : 0.2 * std::sqrt(std::max(r, c));
  for_each_chunk(
      "muon", device, items, Apply<T>{reinterpret_cast<const Rates*>(now.rates.data<double>()), scale, x_irc.data<A>(), adjusted});
}

template <class T> void update_matrices(const std::vector<OptimizerTensor>& tensors, const Muon& options, const StepNumbers& now) {
  using A = Accumulator<T>;
  std::map<std::pair<int64_t, int64_t>, std::vector<MatrixItem<T>>> by_shape;
  for (const OptimizerTensor& t : tensors) {
    if (!t.grad || t.value.dtype() != dtype_of<T>) continue;
    int64_t first = 0;  // element of a matrix
    for (int64_t rows : t.row_blocks) {
      const int64_t columns = t.value.shape()[-1], n = rows * columns;
      A* const master = t.master ? t.master.data<A>() + first : nullptr;
      by_shape[{rows, columns}].push_back(
          {t.value.data<T>() + first, master, t.m.data<A>() + first, t.grad.data<A>() + first, n, t.weight_decay, t.lr_factor});
      first += n;
    }
    if (first != t.value.size()) fail("muon: row_blocks cover {} elements of tensor {}, expected all", {first, show(t.value.shape())});
  }
  for (const auto& [shape, all] : by_shape) {
    const size_t together = static_cast<size_t>(std::max<int64_t>(1, kTogether / (shape.first * shape.second)));
    for (size_t first = 0; first < all.size(); first += together)
      update_batch<T>({all.begin() + first, all.begin() + std::min(first + together, all.size())}, shape.first, shape.second, options, now);
  }
}

}  // namespace muon_kernels

using namespace muon_kernels;

HOST void update_parameters(
    const std::vector<OptimizerTensor>& tensors, const Muon& options, const StepNumbers& now, const char* file, int line) {
  std::vector<OptimizerTensor> matrices, others;
  for (const OptimizerTensor& t : tensors) (t.row_blocks.empty() ? others : matrices).push_back(t);
  check_tensors("muon", matrices, now, {.m = true});
  update_matrices<float>(matrices, options, now);
  update_matrices<double>(matrices, options, now);
  update_matrices<bf16>(matrices, options, now);
  end_update("muon", matrices, file, line);
  update_parameters(others, options.adamw, now, file, line);
}

#define CUDA_MUON(T)                     \
  CUDA_KERNEL(ChunkKernel<Momentum<T>>); \
  CUDA_KERNEL(ChunkKernel<Apply<T>>)
CUDA_MUON(float);
CUDA_MUON(double);
CUDA_MUON(bf16);
CUDA_KERNEL(RowKernel<Normalize<float>>);
CUDA_KERNEL(RowKernel<Normalize<double>>);
CUDA_KERNEL(RowKernel<Polynomial<float>>);
CUDA_KERNEL(RowKernel<Polynomial<double>>);

}  // namespace ricci
