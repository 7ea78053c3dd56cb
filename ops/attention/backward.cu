// The backward on GPUs, from the kept log-sum-exp. With q already divided by sqrt(k):
//   p_ts = exp(q_t . k_s - lse_t),   ds_ts = p_ts (dy_t . v_s - delta_t),   delta_t = dy_t . y_t
// One kernel owns 64 queries and sums dq_t = sum_s ds_ts k_s / sqrt(k); another owns 64 keys and sums dv_s = sum_t p_ts dy_t and
// dk_s = sum_t ds_ts q_t. No atomics: the same bits on every run.
// With N = b n c rows of width k, s bytes a number:
//   bytes   8 s N k read and written, and the other side of each block again from L2, c / 64 times
//   FLOPs   14 N c k, half of it when causal: both kernels make the scores and their gradients
//   floor   f32, k = 64, causal, b n = 768, c = 1024 on an H200: 361 GFLOP at 67 TFLOP/s 5.4 ms
#include "cuda/launch.h"
#include "cuda/math.h"
#include "cuda/verbs/rows.h"
#include "ops/attention/flash.h"
#include "ops/attention/gpu_block.h"
#include "ops/attention/kernels.h"

namespace ricci {
namespace attention_kernels {

// delta_bnc from rows r = (b, c, n) of k elements.
template <class T> struct Delta {
  using A = Accumulator<T>;
  Problem problem;
  const T *dy, *y;
  A* delta_bnc;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    const A sum = row.sum([&](int64_t x) { return A(dy[r * problem.width + x]) * A(y[r * problem.width + x]); });
    const int64_t n = r % problem.heads, t = r / problem.heads % problem.context, b = r / problem.heads / problem.context;
    row.once([&] { delta_bnc[(b * problem.heads + n) * problem.context + t] = sum; });
  }
};

// What both kernels read, and the rows of a (batch, head) in it.
template <class T> struct BackwardInputs {
  using A = Accumulator<T>;
  Problem problem;
  const T *dy, *qkv;
  const A *lse, *delta;

  __device__ Rows<T> q(int64_t head, int64_t t) const { return packed(head, t, 0, problem.context, A(problem.scale)); }
  __device__ Rows<T> k(int64_t head, int64_t s, int64_t keys) const { return packed(head, s, 1, keys, A(1)); }
  __device__ Rows<T> v(int64_t head, int64_t s, int64_t keys) const { return packed(head, s, 2, keys, A(1)); }
  __device__ Rows<T> dy_of(int64_t head, int64_t t) const {
    return {dy + problem.merged(head) + t * problem.d(), problem.d(), problem.context - t, A(1)};
  }
  __device__ Rows<T> packed(int64_t head, int64_t t, int64_t block, int64_t end, A factor) const {
    return {qkv + problem.packed(head) + (t * 3 + block) * problem.d(), 3 * problem.d(), end - t, factor};
  }
  __device__ static Rows<T> from(Rows<T> rows, int64_t x) { return {rows.data + x, rows.row, rows.rows, rows.factor}; }
  HD int64_t blocks_of_context() const { return (problem.context + kGpuBlock - 1) / kGpuBlock; }
};

template <class T, int kWidth> struct QueryGradientKernel {
  static constexpr int kThreads = kGpuThreads;
  using A = Accumulator<T>;
  BackwardInputs<T> in;
  T* dqkv;

  HD int64_t column_groups() const { return (in.problem.width + kWidth - 1) / kWidth; }
  HD int64_t blocks() const { return in.problem.batches * in.problem.heads * in.blocks_of_context() * column_groups(); }

  __device__ void operator()() const {
    const auto shared = SharedBlocks<A>::get();
    const Problem& problem = in.problem;
    const bool dropping = problem.dropout.active();
    const int64_t rest = blockIdx.x / column_groups(), x0 = blockIdx.x % column_groups() * kWidth;
    const int64_t head = rest / in.blocks_of_context(), c = problem.context;
    const int64_t t0 = (in.blocks_of_context() - 1 - rest % in.blocks_of_context()) * kGpuBlock;
    const int64_t last = t0 + kGpuBlock < c ? t0 + kGpuBlock - 1 : c - 1, keys = problem.keys(head), end_key = problem.band.end_key(last, keys);
    A dq[kThreadRows][kWidth / 16] = {};
    for (int64_t s0 = problem.band.first_key(t0) / kGpuBlock * kGpuBlock; s0 < end_key; s0 += kGpuBlock) {
      A p[kThreadRows][kThreadColumns], ds[kThreadRows][kThreadColumns];
      scores<T>(in.q(head, t0), in.k(head, s0, keys), problem.width, shared, p);
      scores<T>(in.dy_of(head, t0), in.v(head, s0, keys), problem.width, shared, ds);
      if (dropping) stage_factors(problem, head, t0, s0, kScorePitch, 1, shared.weights);
      __syncthreads();
      UNROLL(8)
      for (int i = 0; i < kThreadRows; ++i) {
        const int64_t t = t0 + thread_row(i);
        const A lse = t < c ? in.lse[head * c + t] : A(0), delta = t < c ? in.delta[head * c + t] : A(0);
        UNROLL(4)
        for (int j = 0; j < kThreadColumns; ++j) {
          const int64_t s = s0 + thread_column(j);
          const A factor = dropping ? shared.weight(i, j) : A(1);
          const bool visible = t < c && s < keys && problem.band.visible(t, s);
          ds[i][j] = visible ? math::exp(p[i][j] - lse) * (ds[i][j] * factor - delta) : A(0);
        }
      }
      store_weights(ds, shared);
      add_weighted<kWidth, T>(in.from(in.k(head, s0, keys), x0), problem.width - x0, shared, dq);
    }
    T* to = dqkv + problem.packed(head) + t0 * 3 * problem.d() + x0;
    store<kWidth>(dq, to, 3 * problem.d(), c - t0, problem.width - x0, [&](int) { return A(problem.scale); });
  }
};

template <class T, int kWidth> struct KeyGradientKernel {
  static constexpr int kThreads = kGpuThreads;
  using A = Accumulator<T>;
  BackwardInputs<T> in;
  T* dqkv;

  HD int64_t column_groups() const { return (in.problem.width + kWidth - 1) / kWidth; }
  HD int64_t blocks() const { return in.problem.batches * in.problem.heads * in.blocks_of_context() * column_groups(); }

  __device__ void operator()() const {
    const auto shared = SharedBlocks<A>::get();
    const Problem& problem = in.problem;
    const bool dropping = problem.dropout.active();
    const int64_t rest = blockIdx.x / column_groups(), x0 = blockIdx.x % column_groups() * kWidth;
    const int64_t head = rest / in.blocks_of_context(), s0 = rest % in.blocks_of_context() * kGpuBlock, c = problem.context;
    const int64_t keys = problem.keys(head), last = s0 + kGpuBlock < keys ? s0 + kGpuBlock - 1 : keys - 1;
    const int64_t end_query = s0 < keys ? problem.band.end_query(last, c) : 0;
    A dk[kThreadRows][kWidth / 16] = {}, dv[kThreadRows][kWidth / 16] = {};
    for (int64_t t0 = problem.band.first_query(s0) / kGpuBlock * kGpuBlock; t0 < end_query; t0 += kGpuBlock) {
      A p[kThreadRows][kThreadColumns], ds[kThreadRows][kThreadColumns];  // transposed: rows are keys, columns queries
      scores<T>(in.k(head, s0, keys), in.q(head, t0), problem.width, shared, p);
      scores<T>(in.v(head, s0, keys), in.dy_of(head, t0), problem.width, shared, ds);
      if (dropping) stage_factors(problem, head, t0, s0, 1, kScorePitch, shared.weights);
      __syncthreads();
      UNROLL(4)
      for (int j = 0; j < kThreadColumns; ++j) {
        const int64_t t = t0 + thread_column(j);
        const A lse = t < c ? in.lse[head * c + t] : A(0), delta = t < c ? in.delta[head * c + t] : A(0);
        UNROLL(8)
        for (int i = 0; i < kThreadRows; ++i) {
          const int64_t s = s0 + thread_row(i);
          const bool visible = t < c && s < keys && problem.band.visible(t, s);
          const A factor = dropping ? shared.weight(i, j) : A(1);
          p[i][j] = visible ? math::exp(p[i][j] - lse) : A(0);
          ds[i][j] = visible ? p[i][j] * (ds[i][j] * factor - delta) : A(0);
          p[i][j] *= factor;
        }
      }
      store_weights(p, shared);
      add_weighted<kWidth, T>(in.from(in.dy_of(head, t0), x0), problem.width - x0, shared, dv);
      __syncthreads();  // p has been read
      store_weights(ds, shared);
      add_weighted<kWidth, T>(in.from(in.q(head, t0), x0), problem.width - x0, shared, dk);
    }
    T* to = dqkv + problem.packed(head) + s0 * 3 * problem.d() + x0;
    store<kWidth>(dk, to + problem.d(), 3 * problem.d(), c - s0, problem.width - x0, [](int) { return A(1); });
    store<kWidth>(dv, to + 2 * problem.d(), 3 * problem.d(), c - s0, problem.width - x0, [](int) { return A(1); });
  }
};

template <class T, int kWidth> void launch_backward(const BackwardInputs<T>& in, T* dqkv, Device device) {
  constexpr int kBytes = SharedBlocks<Accumulator<T>>::kBytes;
  const KeyGradientKernel<T, kWidth> of_keys{in, dqkv};
  launch("attention' dk dv", device, {of_keys.blocks(), kGpuThreads, kBytes}, of_keys);
  const QueryGradientKernel<T, kWidth> of_queries{in, dqkv};
  launch("attention' dq", device, {of_queries.blocks(), kGpuThreads, kBytes}, of_queries);
}

HOST void backward_gpu(const Problem& problem, const Tensor& dy, const Tensor& qkv, const Tensor& y, const Tensor& lse_bnc,
                       const Tensor& dqkv) {
  if (flash_fits(problem, {&dy, &qkv, &y, &dqkv})) return flash_backward(problem, dy, qkv, y, lse_bnc, dqkv);
  const Tensor delta_bnc = like(lse_bnc);
  with_dtype(qkv, [&]<class T>(T) {
    using A = Accumulator<T>;
    const Delta<T> of_rows{problem, dy.data<T>(), y.data<T>(), delta_bnc.data<A>()};
    for_rows("attention' delta", qkv.device(), problem.batches * problem.context * problem.heads, problem.width, of_rows);
    const BackwardInputs<T> in{problem, dy.data<T>(), qkv.data<T>(), lse_bnc.data<A>(), delta_bnc.data<A>()};
    // f64 has no registers for more.
    if (problem.width <= 32 || dtype_of<T> == Dtype::f64) return launch_backward<T, 32>(in, dqkv.data<T>(), qkv.device());
    if constexpr (dtype_of<T> != Dtype::f64) launch_backward<T, 64>(in, dqkv.data<T>(), qkv.device());
  });
}

}  // namespace attention_kernels

using namespace attention_kernels;

CUDA_ROWS(Delta);
CUDA_KERNEL(QueryGradientKernel<float, 32>);
CUDA_KERNEL(QueryGradientKernel<float, 64>);
CUDA_KERNEL(QueryGradientKernel<double, 32>);
CUDA_KERNEL(QueryGradientKernel<bf16, 32>);
CUDA_KERNEL(QueryGradientKernel<bf16, 64>);
CUDA_KERNEL(KeyGradientKernel<float, 32>);
CUDA_KERNEL(KeyGradientKernel<float, 64>);
CUDA_KERNEL(KeyGradientKernel<double, 32>);
CUDA_KERNEL(KeyGradientKernel<bf16, 32>);
CUDA_KERNEL(KeyGradientKernel<bf16, 64>);

}  // namespace ricci
