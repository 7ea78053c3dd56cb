// The scores of attention with a metric, r_cc' = sum over k and k' of M_kk' p_ck p_c'k', from the packed entries m_l of M only. M is
// symmetric, so the terms with M_kk' and M_k'k are added first. For every pair c, c' of positions
//   r_cc' = sum_k m_kk p_ck p_c'k + sum_{k < k'} m_kk' (p_ck p_c'k' + p_ck' p_c'k)
// The MetaFormer README (section "Forwards Pass") instead uses the factors 1, 2, 2, 4 and only the product p_ck p_c'k':
//   c = c', k = k'     1                 right
//   c = c', k < k'     2 p_ck p_ck'      right: both products are equal
//   c != c', k = k'    2                 wrong by a factor of 2
//   c != c', k < k'    4 p_ck p_c'k'     wrong: this is not a multiple of p_ck p_c'k' + p_ck' p_c'k
// The derivation has two mistakes. Its first step, "2 delta^{k>k'}", assumes that p_ck p_c'k' is symmetric in k and k', but this holds only
// if c = c'. It also doubles the entries with c != c'. This is right for a sum over all pairs of positions, but attention needs every
// score. The gradients inherit both mistakes, and the update adds the gradient instead of subtracting it. With R = dL/dr, summed over the
// batch for m, and G = p^T R p:
//   dp = R p M + R^T p M,   dm_kk = G_kk,   dm_kk' = G_kk' + G_k'k
// With b sequences of c positions, n heads of width k, elements of s bytes:
//   bytes   s b n c^2 written, 2 s b n c k / 16 c read in tiles of 16 x 16;  FLOPs 2 b n c^2 k^2, against 2 b n c^2 k via p M
#include "autograd/record.h"
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "cuda/gemm/gemm.h"
#include "cuda/launch.h"
#include "cuda/verbs/arithmetic.h"
#include "ops/metric/metric.h"

namespace ricci {
namespace metric_kernels {

// Returns one score; m contains the entries of the upper triangle, row by row.
template <class A, class M> HD A packed_score(const A* p, const A* other, const M* m, int64_t width) {
  A sum = 0;
  for (int64_t k = 0; k < width; ++k, m += width - k + 1) {
    A row = A(m[0]) * other[k], mirrored = 0;
#pragma omp simd reduction(+ : row, mirrored)
    for (int64_t j = k + 1; j < width; ++j) {
      row += A(m[j - k]) * other[j];
      mirrored += A(m[j - k]) * p[j];
    }
    sum += p[k] * row + other[k] * mirrored;
  }
  return sum;
}

template <class A> struct Scores {
  Extents n;
  const A *p, *m;
  A* r;

  HD const A* row(int64_t b, int64_t head, int64_t c) const { return p + (b * n.positions + c) * n.heads * n.width + head * n.width; }
  // On the CPU: computes all scores of the queries (b, head, c) from `begin` to `end` - 1.
  HD void operator()(int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t c = i % n.positions, head = i / n.positions % n.heads, b = i / n.positions / n.heads;
      for (int64_t other = 0; other < n.positions; ++other)
        r[i * n.positions + other] = packed_score(row(b, head, c), row(b, head, other), m + head * packed_size(n.width), n.width);
    }
  }
};

// A thread block computes 16 x 16 scores. Their rows of p are in shared memory: each row is read 16 times.
template <class A> struct ScoresKernel {
  static constexpr int kThreads = 256, kSide = 16;
  Scores<A> scores;

  HD int64_t tiles() const { return (scores.n.positions + kSide - 1) / kSide; }
  HD static int64_t pitch(int64_t width) { return width | 1; }  // odd: the rows begin in different banks
  __device__ void operator()() const {
    const int64_t width = scores.n.width, head = blockIdx.x / tiles() / tiles();
    const int64_t first = blockIdx.x / tiles() % tiles() * kSide, first_other = blockIdx.x % tiles() * kSide;
    A *const rows = dynamic_shared<A>(), *const others = rows + kSide * pitch(width);
    load(rows, head, first);
    load(others, head, first_other);
    __syncthreads();
    const int y = static_cast<int>(threadIdx.x) / kSide, x = static_cast<int>(threadIdx.x) % kSide;
    if (first + y >= scores.n.positions || first_other + x >= scores.n.positions) return;
    scores.r[(head * scores.n.positions + first + y) * scores.n.positions + first_other + x] =
        packed_score(rows + y * pitch(width), others + x * pitch(width), scores.m + head % scores.n.heads * packed_size(width), width);
  }
  __device__ void load(A* target, int64_t head, int64_t first) const {
    const int64_t width = scores.n.width;
    for (int64_t i = threadIdx.x; i < kSide * width; i += kThreads) {
      const int64_t c = first + i / width;
      target[i / width * pitch(width) + i % width] =
          c < scores.n.positions ? scores.row(head / scores.n.heads, head % scores.n.heads, c)[i % width] : A(0);
    }
  }
};

// Returns r_bncC in the dtype of p and m, f32 or f64; m is the upper triangle.
HOST Tensor scores(const Extents& n, const Tensor& p_bcd, const Tensor& m_nl) {
  const Tensor r_bncC = like(p_bcd, {n.batches, n.heads, n.positions, n.positions});
  const auto compute = [&]<class A>(A) {
    const Scores<A> scores{n, p_bcd.data<A>(), m_nl.data<A>(), r_bncC.data<A>()};
    if (p_bcd.device() == Device::cpu)
      return parallel_for(n.batches * n.heads * n.positions, 8, [&](int64_t begin, int64_t end) { run_vectorized(scores, begin, end); });
    const ScoresKernel<A> kernel{scores};
    const int64_t bytes = 2 * ScoresKernel<A>::kSide * kernel.pitch(n.width) * static_cast<int64_t>(sizeof(A));
    const int64_t blocks = n.batches * n.heads * kernel.tiles() * kernel.tiles();
    launch("metric_scores", p_bcd.device(), {blocks, kernel.kThreads, static_cast<int>(bytes)}, kernel);
  };
  p_bcd.dtype() == Dtype::f64 ? compute(double{}) : compute(float{});
  return r_bncC;
}

// y_bcd (+)= R_bncC x_bCd for every head, with R transposed or not.
HOST void add_weighted(const Extents& n, const Tensor& r_bncC, bool transposed, const Tensor& x_bcd, const Tensor& y_bcd, bool add) {
  const int64_t c = n.positions, d = n.d();
  const MatrixAt strides{transposed ? 1 : c, transposed ? c : 1, c * c};
  for (int64_t b = 0; b < n.batches; ++b)
    // clang-format off
    gemm({.device = x_bcd.device(), .dtype = x_bcd.dtype(), .batch = n.heads, .m = c, .n = n.width, .k = c,
          .a = r_bncC.rows(b, 1).raw(), .b = x_bcd.rows(b, 1).raw(), .a_at = strides, .b_at = {d, 1, n.width},
          .c = y_bcd.rows(b, 1).raw(), .c_at = {d, 1, n.width}, .accumulate = add});
  // clang-format on
}

HOST Grads scores_backward(const Tensor& dr_bncC, const Tensor& p_bcd, const Tensor& m_nl, Triangle triangle) {
  const Extents n = check("metric_scores", p_bcd, m_nl);
  const Dtype sums = sums_of(p_bcd.dtype());
  const Tensor r = convert(dr_bncC, sums), p = convert(p_bcd, sums);
  Tensor dp, dm_nl;
  if (wants_gradient(0)) {
    const Tensor u = times_whole(p, metric_of(m_nl, triangle, n.width, sums));
    dp = like(p);
    add_weighted(n, r, false, u, dp, false);
    add_weighted(n, r, true, u, dp, true);
    dp = convert(dp, p_bcd.dtype());
  }
  if (wants_gradient(1)) {
    const Tensor weighted = like(p);
    add_weighted(n, r, false, p, weighted, false);
    dm_nl = packed_gradient(summed_outer_products(p, weighted, n.heads), m_nl, triangle, gradient_dtype(1));
  }
  return {dp, dm_nl};
}

}  // namespace metric_kernels

using namespace metric_kernels;

HOST Tensor metric_scores(const Arg& p_bcd, const Arg& m_nl, Triangle triangle) {
  const Extents n = check("metric_scores", p_bcd, m_nl);
  const Dtype sums = sums_of(p_bcd.dtype());
  const Tensor r_bncC = scores(n, convert(p_bcd.detached(), sums), upper_triangle(m_nl.detached(), triangle, n.width, sums));
  return record("metric_scores", {p_bcd, m_nl}, convert(r_bncC, p_bcd.dtype()), keep(p_bcd, m_nl, triangle),
      [](const Tensor& dr_bncC, const Tensor& p, const Tensor& m, Triangle triangle) -> Grads {
        return scores_backward(dr_bncC, p, m, triangle);
      });
}

CUDA_KERNEL(ScoresKernel<float>);
CUDA_KERNEL(ScoresKernel<double>);

}  // namespace ricci
