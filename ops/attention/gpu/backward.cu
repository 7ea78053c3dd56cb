// The backward pass on GPUs, computed from the kept log-sum-exp. With q already multiplied by the factor z of the scores:
//   p_tj = exp(q_t . k_j - lse_t),   ds_tj = p_tj (dy_t . v_j - delta_t),   delta_t = dy_t . y_t
// A thread block of the first kernel has 64 keys and sums dv_j = sum_t p_tj dy_t and dk_j = sum_t ds_tj q_t, over the query heads that
// share these keys, in order. A thread block of the second kernel has 64 queries and sums dq_t = z sum_j ds_tj k_j. A single kernel would
// need atomics, and its results would differ from run to run. With N = b n c queries of width k, N keys, elements of s bytes:
//   bytes   8 s N k read and written, and the other side of each block read again from L2, c / 64 times
//   FLOPs   14 N c k, half of it when causal: both kernels compute the scores and their gradients
#include "cuda/launch.h"
#include "cuda/math.h"
#include "cuda/verbs/rows.h"
#include "ops/attention/gpu/block.h"
#include "ops/attention/kernels.h"

namespace ricci {
namespace attention_kernels {

// Computes delta_bnc from rows r = (b, c, n) of k elements.
template <class T> struct Delta {
  using A = Accumulator<T>;
  Problem problem;
  const T *dy, *y;
  A* delta_bnc;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    const A sum = row.sum([&](int64_t x) { return A(dy[r * problem.width + x]) * A(y[r * problem.width + x]); });
    const int64_t n = r % problem.heads, t = r / problem.heads % problem.queries, b = r / problem.heads / problem.queries;
    row.once([&] { delta_bnc[(b * problem.heads + n) * problem.queries + t] = sum; });
  }
};

// The tensors that both kernels read and write.
template <class T> struct BackwardTensors {
  using A = Accumulator<T>;
  Problem problem;
  HeadRows<const T> q_rows, k_rows, v_rows, dy_rows;
  const A *lse, *delta;
  HeadRows<T> dq, dk, dv;

  // Return the rows of a head from query t or key j on.
  __device__ Matrix<T> q(int64_t head, int64_t t) const {
    return matrix(problem, q_rows, head, t, problem.queries, A(problem.score_scale));
  }
  __device__ Matrix<T> k(int64_t head, int64_t j, int64_t keys) const { return matrix(problem, k_rows, head, j, keys, A(1)); }
  __device__ Matrix<T> v(int64_t head, int64_t j, int64_t keys) const { return matrix(problem, v_rows, head, j, keys, A(1)); }
  __device__ Matrix<T> dy(int64_t head, int64_t t) const { return matrix(problem, dy_rows, head, t, problem.queries, A(1)); }
  __device__ A lse_of(int64_t head, int64_t t) const { return t < problem.queries ? lse[head * problem.queries + t] : A(0); }
  __device__ A delta_of(int64_t head, int64_t t) const { return t < problem.queries ? delta[head * problem.queries + t] : A(0); }
};

// A thread block's head, its first row and its first output column.
struct Part {
  int64_t head, row, column;
  __device__ Part(int64_t blocks_of_rows, int64_t column_groups, int width, bool last_first) {
    const int64_t rest = blockIdx.x / column_groups, block = rest % blocks_of_rows;
    head = rest / blocks_of_rows;
    row = (last_first ? blocks_of_rows - 1 - block : block) * kGpuBlock;
    column = blockIdx.x % column_groups * width;
  }
};

template <class T, int kWidth> struct QueryGradientKernel {
  static constexpr int kThreads = kGpuThreads;
  using A = Accumulator<T>;
  BackwardTensors<T> tensors;

  HD int64_t column_groups() const { return (tensors.problem.width + kWidth - 1) / kWidth; }
  HD int64_t query_blocks() const { return (tensors.problem.queries + kGpuBlock - 1) / kGpuBlock; }
  HD int64_t blocks() const { return tensors.problem.batches * tensors.problem.heads * query_blocks() * column_groups(); }

  __device__ void operator()() const {
    const auto shared = SharedBlocks<A>::get();
    const Problem& problem = tensors.problem;
    const auto [head, t0, x0] = Part(query_blocks(), column_groups(), kWidth, true);
    const int64_t last = t0 + kGpuBlock < problem.queries ? t0 + kGpuBlock - 1 : problem.queries - 1;
    const int64_t keys = problem.keys_of(head), end_key = problem.sees.end_key(last, keys);
    A dq[kThreadRows][kWidth / 16] = {};
    for (int64_t j0 = problem.sees.first_key(t0) / kGpuBlock * kGpuBlock; j0 < end_key; j0 += kGpuBlock) {
      A p[kThreadRows][kThreadColumns], ds[kThreadRows][kThreadColumns];
      scores<T>(tensors.q(head, t0), tensors.k(head, j0, keys), problem.width, shared, p);
      scores<T>(tensors.dy(head, t0), tensors.v(head, j0, keys), problem.width, shared, ds);
      if (problem.dropout.active()) stage_factors(problem, head, t0, j0, kScorePitch, 1, shared.weights);
      __syncthreads();
      differentiate(head, t0, j0, keys, shared, p, ds);
      store_weights(ds, shared);
      add_weighted<kWidth, T>(tensors.k(head, j0, keys).columns_from(x0), problem.width - x0, shared, dq);
    }
    T* target = tensors.dq.of_head(problem, head) + t0 * tensors.dq.row + x0;
    const bool add = tensors.dq.data == tensors.dk.data || tensors.dq.data == tensors.dv.data;  // the other kernel has stored dk and dv
    store<kWidth>(
        dq, target, tensors.dq.row, problem.queries - t0, problem.width - x0, [&](int) { return A(problem.score_scale); }, add);
  }

  // Replaces dy . v by ds.
  __device__ void differentiate(int64_t head, int64_t t0, int64_t j0, int64_t keys, const SharedBlocks<A>& shared,
      const A (&p)[kThreadRows][kThreadColumns], A (&ds)[kThreadRows][kThreadColumns]) const {
    const bool dropping = tensors.problem.dropout.active();
    const BlockMask mask(tensors.problem, t0, j0, keys);
    UNROLL(8)
    for (int i = 0; i < kThreadRows; ++i) {
      const int64_t t = t0 + thread_row(i);
      const A lse = tensors.lse_of(head, t), delta = tensors.delta_of(head, t);
      UNROLL(4)
      for (int j = 0; j < kThreadColumns; ++j) {
        const A factor = dropping ? shared.weight(i, j) : A(1);
        ds[i][j] = mask.visible(thread_row(i), thread_column(j)) ? math::exp(p[i][j] - lse) * (ds[i][j] * factor - delta) : A(0);
      }
    }
  }
};

template <class T, int kWidth> struct KeyGradientKernel {
  static constexpr int kThreads = kGpuThreads;
  using A = Accumulator<T>;
  BackwardTensors<T> tensors;

  HD int64_t column_groups() const { return (tensors.problem.width + kWidth - 1) / kWidth; }
  HD int64_t key_blocks() const { return (tensors.problem.keys + kGpuBlock - 1) / kGpuBlock; }
  HD int64_t blocks() const { return tensors.problem.batches * tensors.problem.of_key_heads().heads * key_blocks() * column_groups(); }

  __device__ void operator()() const {
    const auto shared = SharedBlocks<A>::get();
    const Problem& problem = tensors.problem;
    const auto [number, j0, x0] = Part(key_blocks(), column_groups(), kWidth, false);
    const int64_t first_head = number * problem.group, keys = problem.keys_of(first_head),
                  last = j0 + kGpuBlock < keys ? j0 + kGpuBlock - 1 : keys - 1,
                  end_query = j0 < keys ? problem.sees.end_query(last, problem.queries) : 0;
    A dk[kThreadRows][kWidth / 16] = {}, dv[kThreadRows][kWidth / 16] = {};
    UNROLL(1)
    for (int64_t head = first_head; head < first_head + problem.group; ++head) UNROLL(1)
    for (int64_t t0 = problem.sees.first_query(j0) / kGpuBlock * kGpuBlock; t0 < end_query; t0 += kGpuBlock) {
      A p[kThreadRows][kThreadColumns], ds[kThreadRows][kThreadColumns];  // transposed: rows are keys, columns queries
      scores<T>(tensors.k(head, j0, keys), tensors.q(head, t0), problem.width, shared, p);
      scores<T>(tensors.v(head, j0, keys), tensors.dy(head, t0), problem.width, shared, ds);
      if (problem.dropout.active()) stage_factors(problem, head, t0, j0, 1, kScorePitch, shared.weights);
      __syncthreads();
      differentiate(head, t0, j0, keys, shared, p, ds);
      store_weights(p, shared);
      add_weighted<kWidth, T>(tensors.dy(head, t0).columns_from(x0), problem.width - x0, shared, dv);
      __syncthreads();  // p has been read
      store_weights(ds, shared);
      add_weighted<kWidth, T>(tensors.q(head, t0).columns_from(x0), problem.width - x0, shared, dk);
    }
    store_gradients(first_head, j0, x0, dk, dv);
  }

  // Replaces dy . v with ds, and the scores with p times the dropout factor.
  __device__ void differentiate(int64_t head, int64_t t0, int64_t j0, int64_t keys, const SharedBlocks<A>& shared,
      A (&p)[kThreadRows][kThreadColumns], A (&ds)[kThreadRows][kThreadColumns]) const {
    const bool dropping = tensors.problem.dropout.active();
    const BlockMask mask(tensors.problem, t0, j0, keys);
    UNROLL(4)
    for (int j = 0; j < kThreadColumns; ++j) {
      const int64_t t = t0 + thread_column(j);
      const A lse = tensors.lse_of(head, t), delta = tensors.delta_of(head, t);
      UNROLL(8)
      for (int i = 0; i < kThreadRows; ++i) {
        const bool visible = t < tensors.problem.queries && mask.visible(thread_column(j), thread_row(i));
        const A factor = dropping ? shared.weight(i, j) : A(1);
        p[i][j] = visible ? math::exp(p[i][j] - lse) : A(0);
        ds[i][j] = visible ? p[i][j] * (ds[i][j] * factor - delta) : A(0);
        p[i][j] *= factor;
      }
    }
  }

  // Stores the gradients, with zeros for padding.
  __device__ void store_gradients(
      int64_t head, int64_t j0, int64_t x0, A (&dk)[kThreadRows][kWidth / 16], const A (&dv)[kThreadRows][kWidth / 16]) const {
    const Problem& problem = tensors.problem;
    const int64_t rows = problem.keys - j0, columns = problem.width - x0;
    const bool one_sum = tensors.dk.data == tensors.dv.data;
    if (one_sum)
      for (int i = 0; i < kThreadRows; ++i)
        for (int x = 0; x < kWidth / 16; ++x) dk[i][x] += dv[i][x];
    store<kWidth>(
        dk, tensors.dk.of_head(problem, head) + j0 * tensors.dk.row + x0, tensors.dk.row, rows, columns, [](int) { return A(1); });
    if (!one_sum)
      store<kWidth>(
          dv, tensors.dv.of_head(problem, head) + j0 * tensors.dv.row + x0, tensors.dv.row, rows, columns, [](int) { return A(1); });
  }
};

template <class T, int kWidth> void launch_backward(const BackwardTensors<T>& tensors, Device device) {
  constexpr int kBytes = SharedBlocks<Accumulator<T>>::kBytes;
  const KeyGradientKernel<T, kWidth> key_kernel{tensors};
  launch("attention' dk dv", device, {key_kernel.blocks(), kGpuThreads, kBytes}, key_kernel);
  const QueryGradientKernel<T, kWidth> query_kernel{tensors};
  launch("attention' dq", device, {query_kernel.blocks(), kGpuThreads, kBytes}, query_kernel);
}

HOST void blocks_backward(
    const Problem& problem, const Tensor& dy, const QueryKeyValue& inputs, const Outputs& out, const QueryKeyValue& gradients) {
  const Tensor delta_bnc = like(out.lse_bnc);
  with_dtype(dy, [&]<class T>(T) {
    using A = Accumulator<T>;
    const Delta<T> of_rows{problem, dy.data<T>(), out.y_bcd.data<T>(), delta_bnc.data<A>()};
    for_rows("attention' delta", dy.device(), problem.batches * problem.queries * problem.heads, problem.width, of_rows);
    const BackwardTensors<T> tensors{problem, head_rows<const T>(inputs.q), head_rows<const T>(inputs.k), head_rows<const T>(inputs.v),
        head_rows<const T>({dy}), out.lse_bnc.data<A>(), delta_bnc.data<A>(), head_rows<T>(gradients.q), head_rows<T>(gradients.k),
        head_rows<T>(gradients.v)};
    // With f64, more columns would exceed the registers.
    if (problem.width <= 32 || dtype_of<T> == Dtype::f64) return launch_backward<T, 32>(tensors, dy.device());
    if constexpr (dtype_of<T> != Dtype::f64) launch_backward<T, 64>(tensors, dy.device());
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
