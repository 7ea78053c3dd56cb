// Attention on a GPU (Dao 2023) in f32, f64 and bf16, without tensor cores, for all problems that flash/ cannot run. One thread block
// computes 64 queries of one head and up to 128 columns of their output. It loops over blocks of 64 keys. The scores of one block are in
// the registers of its 128 threads, 8 rows x 4 columns in each (block.h). Each block updates the largest score m, the sum l and the output
// o, as in cpu/running_softmax.h:
//   s = q k^T,  m' = max(m, max_j s),  p = exp(s - m'),  l = l exp(m - m') + sum_j p,  o = o exp(m - m') + p v
// q is already multiplied by z. At the end y = o / l and lse = m + log l. 16 threads share a row: row_reduce exchanges their maxima and
// sums.
// With N = b n c queries of width k, N keys, s bytes per number:
//   bytes   4 s N k read and written, keys and values read again from L2, c / 64 times;  FLOPs 4 N c k, half of it when causal
#include "cuda/launch.h"
#include "cuda/math.h"
#include "cuda/verbs/reduce.h"
#include "ops/attention/gpu/block.h"
#include "ops/attention/kernels.h"

namespace ricci {
namespace attention_kernels {

template <class T, int kWidth> struct ForwardKernel {
  static constexpr int kThreads = kGpuThreads;
  using A = Accumulator<T>;
  static constexpr A kLowest = -A(__builtin_huge_val());

  Problem problem;
  HeadRows<const T> q, k, v;
  HeadRows<T> y;
  A* lse;

  struct State {
    A m[kThreadRows], l[kThreadRows], o[kThreadRows][kWidth / 16];
  };

  HD int64_t query_blocks() const { return (problem.queries + kGpuBlock - 1) / kGpuBlock; }
  HD int64_t column_groups() const { return (problem.width + kWidth - 1) / kWidth; }

  __device__ void operator()() const {
    const auto shared = SharedBlocks<A>::get();
    // The blocks of late queries start first: they see more keys.
    const int64_t rest = blockIdx.x / column_groups(), x0 = blockIdx.x % column_groups() * kWidth;
    const int64_t head = rest % (problem.batches * problem.heads);
    const int64_t t0 = (query_blocks() - 1 - rest / (problem.batches * problem.heads)) * kGpuBlock;
    const int64_t end = t0 + kGpuBlock < problem.queries ? t0 + kGpuBlock : problem.queries;
    State state;
    for (int i = 0; i < kThreadRows; ++i) {
      state.m[i] = kLowest;
      state.l[i] = 0;
      for (int x = 0; x < kWidth / 16; ++x) state.o[i][x] = 0;
    }
    const int64_t keys = problem.keys_of(head), end_key = problem.sees.end_key(end - 1, keys);
    for (int64_t j0 = problem.sees.first_key(t0) / kGpuBlock * kGpuBlock; j0 < end_key; j0 += kGpuBlock) {
      A s[kThreadRows][kThreadColumns];
      scores<T>(
          matrix(problem, q, head, t0, end, A(problem.score_scale)), matrix(problem, k, head, j0, keys, A(1)), problem.width, shared, s);
      const BlockMask mask(problem, t0, j0, keys);
      UNROLL(8)
      for (int i = 0; i < kThreadRows; ++i) add_row(mask, i, s[i], state);
      if (problem.dropout.active()) drop(head, t0, j0, shared, s);
      store_weights(s, shared);
      add_weighted<kWidth, T>(matrix(problem, v, head, j0, keys, A(1)).columns_from(x0), problem.width - x0, shared, state.o);
    }
    // A query that sees no key has l = 0: its output is 0, and its infinite lse gives p = 0 in the backward pass.
    store<kWidth>(state.o, y.of_head(problem, head) + t0 * y.row + x0, y.row, end - t0, problem.width - x0,
        [&](int i) { return state.l[i] == 0 ? A(0) : 1 / state.l[i]; });
    if (x0 == 0 && threadIdx.x % 16 == 0)
      for (int i = 0; i < kThreadRows; ++i)
        if (const int64_t t = t0 + thread_row(i); t < end)
          lse[head * problem.queries + t] = state.l[i] == 0 ? -kLowest : state.m[i] + math::log(state.l[i]);
  }

  __device__ void drop(int64_t head, int64_t t0, int64_t j0, const SharedBlocks<A>& shared, A (&p)[kThreadRows][kThreadColumns]) const {
    stage_factors(problem, head, t0, j0, kScorePitch, 1, shared.weights);
    __syncthreads();
    for (int i = 0; i < kThreadRows; ++i)
      for (int j = 0; j < kThreadColumns; ++j) p[i][j] *= shared.weight(i, j);
  }

  // Replaces scores by p (0 if not visible) and updates row i of the state.
  __device__ static void add_row(const BlockMask& mask, int i, A (&s)[kThreadColumns], State& state) {
    A largest = kLowest, sum = 0;
    for (int j = 0; j < kThreadColumns; ++j)
      if (mask.visible(thread_row(i), thread_column(j)) && s[j] > largest) largest = s[j];
    largest = row_reduce(largest, Max{});
    largest = largest > state.m[i] ? largest : state.m[i];
    const A shift = largest > kLowest ? largest : A(0), factor = math::exp(state.m[i] - shift);
    for (int j = 0; j < kThreadColumns; ++j) {
      s[j] = mask.visible(thread_row(i), thread_column(j)) ? math::exp(s[j] - shift) : A(0);
      sum += s[j];
    }
    state.m[i] = largest;
    state.l[i] = state.l[i] * factor + row_reduce(sum, Sum{});
    for (int x = 0; x < kWidth / 16; ++x) state.o[i][x] *= factor;
  }
};

template <class T, int kWidth> void launch_forward(const Problem& problem, const QueryKeyValue& inputs, const Outputs& out) {
  using A = Accumulator<T>;
  const ForwardKernel<T, kWidth> kernel{problem, head_rows<const T>(inputs.q), head_rows<const T>(inputs.k), head_rows<const T>(inputs.v),
      head_rows<T>({out.y_bcd}), out.lse_bnc.data<A>()};
  const int64_t blocks = problem.batches * problem.heads * kernel.query_blocks() * kernel.column_groups();
  launch("attention", out.y_bcd.device(), {blocks, kGpuThreads, SharedBlocks<A>::kBytes}, kernel);
}

HOST void blocks_forward(const Problem& problem, const QueryKeyValue& inputs, const Outputs& out) {
  with_dtype(out.y_bcd, [&]<class T>(T) {
    if (problem.width <= 32) return launch_forward<T, 32>(problem, inputs, out);
    if constexpr (dtype_of<T> != Dtype::f64) {  // with f64, more columns would exceed the registers
      if (problem.width > 64) return launch_forward<T, 128>(problem, inputs, out);
    }
    launch_forward<T, 64>(problem, inputs, out);
  });
}

}  // namespace attention_kernels

using namespace attention_kernels;

CUDA_KERNEL(ForwardKernel<float, 32>);
CUDA_KERNEL(ForwardKernel<float, 64>);
CUDA_KERNEL(ForwardKernel<float, 128>);
CUDA_KERNEL(ForwardKernel<double, 32>);
CUDA_KERNEL(ForwardKernel<double, 64>);
CUDA_KERNEL(ForwardKernel<bf16, 32>);
CUDA_KERNEL(ForwardKernel<bf16, 64>);
CUDA_KERNEL(ForwardKernel<bf16, 128>);

}  // namespace ricci
