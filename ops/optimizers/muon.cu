// Muon (Jordan et al. 2024): the update of a matrix is its momentum u with all singular values moved close to 1. With u = U S V^T it is
// about U V^T, so each direction changes by as much, also those with a small gradient. Newton-Schulz steps compute it without a
// decomposition:
//   X = u / |u|_F;    ns_steps times   A = X X^T,  X = p(A) X,   p(A) = 3.4445 I - 4.7750 A + 2.0315 A^2
// A singular value s becomes p(s^2) s, which five steps bring from all of 0.01 .. 1 to 0.7 .. 1.2. If a matrix has more rows than columns,
// A = X^T X and X = X p(A), because that A is smaller. Matrices of equal shape are computed in batches.
//   FLOPs   5 (4 m^2 n + 2 m^3) for a matrix with sides m <= n; bytes 20 n m, and the products
//   floor   124 million, 12 layers of d 768, in f32 on an H200: 1.6 TFLOP at 67 TFLOP/s 24 ms
#include "ops/optimizers/muon.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/error.h"
#include "cuda/gemm/gemm.h"
#include "cuda/math.h"
#include "cuda/trace.h"
#include "cuda/verbs/chunks.h"
#include "ops/optimizers/optimizer_update.h"

namespace ricci {
namespace muon_kernels {

inline constexpr int64_t kNormChunk = 16384;            // elements of one partial sum of squares
inline constexpr int64_t kTogether = int64_t{1} << 22;  // elements of the matrices in a batch, about: 16 MB in f32

// One matrix as kernels see it; n elements. Its x is in the batch.
template <class T> struct MatrixItem {
  using A = Accumulator<T>;
  T* value;
  A *master, *m;
  const A* grad;
  int64_t n;
  double weight_decay;
  A* x = nullptr;
  double* squares = nullptr;  // the partial sums of x^2
};

// m, and x = u.
template <class T> struct Momentum {
  using A = Accumulator<T>;
  using Item = MatrixItem<T>;
  static constexpr int64_t kBlockChunk = kNormChunk, kLoopChunk = kNormChunk;
  A one_minus_momentum;
  bool nesterov;
  const double* gradient_scale;

  template <class Row> HD void operator()(const Item& t, int64_t begin, Row row) const {
    const A scale = static_cast<A>(*gradient_scale), rate = one_minus_momentum, *const grad = t.grad + begin;
    A *const m = t.m + begin, *const x = t.x + begin;
    double* const square = t.squares + begin / kNormChunk;
    if (!math::isfinite(*gradient_scale)) {  // the products run in any case, here on zeros
      row.each([&](int64_t i) { x[i] = 0; });
      return row.once([&] { *square = 0; });
    }
    const double sum = row.sum([&](int64_t i) {
      const A before = m[i], g = grad[i] * scale, mean = before + rate * (g - before);
      m[i] = mean;
      const A u = nesterov ? mean + rate * (g - mean) : mean;
      x[i] = u;
      return static_cast<double>(u) * static_cast<double>(u);
    });
    row.once([&] { *square = sum; });
  }
};

// A row of x, divided by the norm of its matrix.
template <class A> struct Normalize {
  A* x;
  const double* squares;
  int64_t rows, columns, chunks;  // of a matrix
  template <class Row> HD void operator()(int64_t r, Row row) const {
    double sum = 0;
    for (int64_t i = 0; i < chunks; ++i) sum += squares[r / rows * chunks + i];
    const A factor = A(1 / max(math::sqrt(sum), 1e-7));
    A* const x_c = x + r * columns;
    row.each([&](int64_t c) { x_c[c] *= factor; });
  }
};

// A row of p(A), in place of A^2.
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

// The new weights.
template <class T> struct Apply {
  using A = Accumulator<T>;
  using Item = MatrixItem<T>;
  static constexpr int64_t kBlockChunk = 4096, kLoopChunk = 32768;
  const Rates* rates;
  const double* gradient_scale;
  double adjusted;

  template <class Row> HD void operator()(const Item& t, int64_t begin, Row row) const {
    if (!math::isfinite(*gradient_scale)) return;
    const A shrink = A(1 - rates->learning_rate * t.weight_decay), step = A(rates->learning_rate * adjusted);
    row.each_piece(
        [&](auto in_chunk) {
          const auto piece = in_chunk.from(begin);
          const auto w = (t.master ? piece.load(t.master) : piece.load(t.value)) * shrink - step * piece.load(t.x);
          if (t.master) piece.store(t.master, w);
          piece.store(t.value, w);
        },
        t.value, t.master, t.x);
  }
};

// c_i = a_i b_i for matrices i of a batch; `a_transposed`: a_i^T b_i.
HOST void multiply(const Tensor& c_imn, const Tensor& a_imk, bool a_transposed, const Tensor& b_ikn, bool b_transposed) {
  const auto strides = [](const Tensor& t, bool transposed) {
    const int64_t rows = t.shape()[1], columns = t.shape()[2];
    return transposed ? MatrixAt{1, columns, rows * columns} : MatrixAt{columns, 1, rows * columns};
  };
  gemm({.device = c_imn.device(),
      .dtype = c_imn.dtype(),
      .batch = c_imn.shape()[0],
      .m = c_imn.shape()[1],
      .n = c_imn.shape()[2],
      .k = a_imk.shape()[a_transposed ? 1 : 2],
      .a = a_imk.raw(),
      .b = b_ikn.raw(),
      .a_at = strides(a_imk, a_transposed),
      .b_at = strides(b_ikn, b_transposed),
      .c = c_imn.raw(),
      .c_at = strides(c_imn, false)});
}

// The Newton-Schulz steps. x_irc is overwritten.
template <class A> HOST Tensor orthogonalized(Tensor x_irc, int64_t steps) {
  const int64_t count = x_irc.shape()[0], rows = x_irc.shape()[1], columns = x_irc.shape()[2], m = std::min(rows, columns);
  const bool tall = rows > columns;
  const Device device = x_irc.device();
  const Tensor gram_imm = like(x_irc, {count, m, m}), square_imm = like(gram_imm);
  Tensor next_irc = like(x_irc);
  for (int64_t step = 0; step < steps; ++step) {
    multiply(gram_imm, x_irc, tall, x_irc, !tall);
    multiply(square_imm, gram_imm, false, gram_imm, false);
    for_rows("muon", device, count * m, m, Polynomial<A>{gram_imm.data<A>(), square_imm.data<A>(), m});
    tall ? multiply(next_irc, x_irc, false, square_imm, false) : multiply(next_irc, square_imm, false, x_irc, false);
    std::swap(x_irc, next_irc);
  }
  return x_irc;
}

HOST double adjusted(AdjustLr by, double rows, double columns) {
  return by == AdjustLr::original ? std::sqrt(std::max(1.0, rows / columns)) : 0.2 * std::sqrt(std::max(rows, columns));
}

// Matrices of one shape.
template <class T>
HOST void update_batch(std::vector<MatrixItem<T>> items, int64_t rows, int64_t columns, const Muon& options, const StepNumbers& now) {
  using A = Accumulator<T>;
  const int64_t count = static_cast<int64_t>(items.size()), n = rows * columns, chunks = (n + kNormChunk - 1) / kNormChunk;
  const Device device = now.rates.device();
  const double* const scale = now.gradient_scale.data<double>();
  const Tensor u_irc({count, rows, columns}, dtype_of<A>, device), squares({count, chunks}, Dtype::f64, device);
  const auto point_at = [&](const Tensor& x_irc) {
    for (int64_t i = 0; i < count; ++i) items[static_cast<size_t>(i)].x = x_irc.data<A>() + i * n;
  };
  point_at(u_irc);
  for (int64_t i = 0; i < count; ++i) items[static_cast<size_t>(i)].squares = squares.data<double>() + i * chunks;
  for_each_chunk("muon", device, items, Momentum<T>{A(1 - options.momentum), options.nesterov, scale});
  for_rows("muon", device, count * rows, columns, Normalize<A>{u_irc.data<A>(), squares.data<double>(), rows, columns, chunks});
  const Tensor x_irc = orthogonalized<A>(u_irc, options.ns_steps);
  point_at(x_irc);
  const double factor = adjusted(options.adjust_lr, static_cast<double>(rows), static_cast<double>(columns));
  for_each_chunk("muon", device, items, Apply<T>{reinterpret_cast<const Rates*>(now.rates.data<double>()), scale, factor});
}

// The matrices in a tensor, by their shapes.
template <class T> using Shapes = std::map<std::pair<int64_t, int64_t>, std::vector<MatrixItem<T>>>;
template <class T> HOST void add_matrices(const OptimizerTensor& t, Shapes<T>& shapes) {
  using A = Accumulator<T>;
  const int64_t columns = t.value.shape()[-1];
  int64_t first = 0;  // element
  for (int64_t rows : t.row_blocks) {
    A* const master = t.master ? t.master.data<A>() + first : nullptr;
    shapes[{rows, columns}].push_back(
        {t.value.data<T>() + first, master, t.m.data<A>() + first, t.grad.data<A>() + first, rows * columns, t.weight_decay});
    first += rows * columns;
  }
  if (first != t.value.size()) fail("muon: {} of {} elements of {} are in its row blocks", {first, t.value.size(), t.name});
}

template <class T> HOST void update_matrices(const std::vector<OptimizerTensor>& tensors, const Muon& options, const StepNumbers& now) {
  Shapes<T> shapes;
  for (const OptimizerTensor& t : tensors)
    if (t.grad && t.value.dtype() == dtype_of<T>) add_matrices<T>(t, shapes);
  for (const auto& [shape, all] : shapes) {
    const auto [rows, columns] = shape;
    const size_t together = static_cast<size_t>(std::max<int64_t>(1, kTogether / (rows * columns)));
    for (size_t first = 0; first < all.size(); first += together) {
      const std::vector<MatrixItem<T>> batch(all.begin() + first, all.begin() + std::min(first + together, all.size()));
      update_batch<T>(batch, rows, columns, options, now);
    }
  }
}

}  // namespace muon_kernels

using namespace muon_kernels;

HOST void update_parameters(
    const std::vector<OptimizerTensor>& tensors, const Muon& options, const StepNumbers& now, const char* file, int line) {
  std::vector<OptimizerTensor> matrices, others;
  for (const OptimizerTensor& t : tensors) (t.row_blocks.empty() ? others : matrices).push_back(t);
  check_tensors("muon", matrices, now, {.m = true});
  for (const OptimizerTensor& t : matrices)
    if (t.grad && t.grad.dtype() == Dtype::bf16) fail("muon: {} is bf16 and has no master weights", {t.name});
  update_matrices<float>(matrices, options, now);
  update_matrices<double>(matrices, options, now);
  update_matrices<bf16>(matrices, options, now);
  end_update("muon", matrices, file, line);
  update_parameters(others, options.adamw, now, file, line);
}

CUDA_KERNEL(ChunkKernel<Momentum<float>>);
CUDA_KERNEL(ChunkKernel<Momentum<double>>);
CUDA_KERNEL(ChunkKernel<Momentum<bf16>>);
CUDA_KERNEL(ChunkKernel<Apply<float>>);
CUDA_KERNEL(ChunkKernel<Apply<double>>);
CUDA_KERNEL(ChunkKernel<Apply<bf16>>);
CUDA_KERNEL(RowKernel<Normalize<float>>);
CUDA_KERNEL(RowKernel<Normalize<double>>);
CUDA_KERNEL(RowKernel<Polynomial<float>>);
CUDA_KERNEL(RowKernel<Polynomial<double>>);

}  // namespace ricci
