// The forward on GPUs (Dao 2023): a thread block owns 64 queries of one (batch, head) and up to 128 columns of their output
// and goes over the blocks of 64 keys they see. With the maximum m, the sum l and the output o so far:
//   s = q k^T / sqrt(k),  m' = max(m, max_s s),  p = exp(s - m'),  l = l exp(m - m') + sum_s p,  o = o exp(m - m') + p v
// and at the end y = o / l,  lse = m + log l.
// What flash_forward.cu cannot do, in f32, f64 or bf16 without tensor cores. With N = b n c rows of width k, s bytes a number:
//   bytes   4 s N k read and written, keys and values again from L2, c / 64 times;  FLOPs 4 N c k, half of it when causal
//   floor   f32, k = 64, causal, b n = 768, c = 1024 on an H200: 103 GFLOP at 67 TFLOP/s 1.5 ms
#include "cuda/launch.h"
#include "cuda/math.h"
#include "cuda/verbs/reduce.h"
#include "ops/attention/flash.h"
#include "ops/attention/gpu_block.h"
#include "ops/attention/kernels.h"

namespace ricci {
namespace attention_kernels {

template <class T, int kWidth> struct ForwardKernel {
  static constexpr int kThreads = kGpuThreads;
  using A = Accumulator<T>;
  static constexpr A kLowest = -A(__builtin_huge_val());

  Problem problem;
  const T* qkv;
  T* y;
  A* lse;

  struct State {
    A m[kThreadRows], l[kThreadRows], o[kThreadRows][kWidth / 16];
  };

  HD int64_t query_blocks() const { return (problem.context + kGpuBlock - 1) / kGpuBlock; }
  HD int64_t column_groups() const { return (problem.width + kWidth - 1) / kWidth; }

  __device__ void operator()() const {
    const auto shared = SharedBlocks<A>::get();
    // Late queries see more keys: their blocks start first.
    const int64_t rest = blockIdx.x / column_groups(), x0 = blockIdx.x % column_groups() * kWidth;
    const int64_t head = rest % (problem.batches * problem.heads);
    const int64_t t0 = (query_blocks() - 1 - rest / (problem.batches * problem.heads)) * kGpuBlock;
    const int64_t d = problem.d(), c = problem.context, end = t0 + kGpuBlock < c ? t0 + kGpuBlock : c;
    const T* q = qkv + problem.packed(head);
    State state;
    for (int i = 0; i < kThreadRows; ++i) {
      state.m[i] = kLowest, state.l[i] = 0;
      for (int x = 0; x < kWidth / 16; ++x) state.o[i][x] = 0;
    }
    const int64_t keys = problem.keys(head), end_key = problem.band.end_key(end - 1, keys);
    for (int64_t s0 = problem.band.first_key(t0) / kGpuBlock * kGpuBlock; s0 < end_key; s0 += kGpuBlock) {
      A s[kThreadRows][kThreadColumns];
      const T* k = q + s0 * 3 * d + d;
      scores<T>({q + t0 * 3 * d, 3 * d, end - t0, A(problem.scale)}, {k, 3 * d, keys - s0, A(1)}, problem.width, shared, s);
      UNROLL(8)
      for (int i = 0; i < kThreadRows; ++i) add_row(t0 + thread_row(i), s0, keys, i, s[i], state);
      if (problem.dropout.active()) drop(head, t0, s0, shared, s);
      store_weights(s, shared);
      add_weighted<kWidth, T>({k + d + x0, 3 * d, keys - s0, A(1)}, problem.width - x0, shared, state.o);
    }
    // A query that sees no key has l = 0: its output is 0 and, with an infinite lse, p = 0 in the backward.
    store<kWidth>(state.o, y + problem.merged(head) + t0 * d + x0, d, end - t0, problem.width - x0,
                  [&](int i) { return state.l[i] == 0 ? A(0) : 1 / state.l[i]; });
    if (x0 == 0 && threadIdx.x % 16 == 0)
      for (int i = 0; i < kThreadRows; ++i)
        if (t0 + thread_row(i) < end) lse[head * c + t0 + thread_row(i)] = state.l[i] == 0 ? -kLowest : state.m[i] + math::log(state.l[i]);
  }

  __device__ void drop(int64_t head, int64_t t0, int64_t s0, const SharedBlocks<A>& shared, A (&p)[kThreadRows][kThreadColumns]) const {
    stage_factors(problem, head, t0, s0, kScorePitch, 1, shared.weights);
    __syncthreads();
    for (int i = 0; i < kThreadRows; ++i)
      for (int j = 0; j < kThreadColumns; ++j) p[i][j] *= shared.weight(i, j);
  }

  // Scores become p, 0 where not visible; row i of the state is brought up to date.
  __device__ void add_row(int64_t t, int64_t s0, int64_t keys, int i, A (&s)[kThreadColumns], State& state) const {
    const int64_t first = problem.band.first_key(t) - s0, last = problem.band.end_key(t, keys) - s0;
    A largest = kLowest, sum = 0;
    for (int j = 0; j < kThreadColumns; ++j)
      if (thread_column(j) >= first && thread_column(j) < last && s[j] > largest) largest = s[j];
    largest = row_reduce(largest, Max{});
    largest = largest > state.m[i] ? largest : state.m[i];
    const A shift = largest > kLowest ? largest : A(0), factor = math::exp(state.m[i] - shift);
    for (int j = 0; j < kThreadColumns; ++j) {
      s[j] = thread_column(j) >= first && thread_column(j) < last ? math::exp(s[j] - shift) : A(0);
      sum += s[j];
    }
    state.m[i] = largest;
    state.l[i] = state.l[i] * factor + row_reduce(sum, Sum{});
    for (int x = 0; x < kWidth / 16; ++x) state.o[i][x] *= factor;
  }
};

template <class T, int kWidth> void launch_forward(const Problem& problem, const Tensor& qkv, const Tensor& y, const Tensor& lse) {
  using A = Accumulator<T>;
  const ForwardKernel<T, kWidth> kernel{problem, qkv.data<T>(), y.data<T>(), lse.data<A>()};
  const int64_t blocks = problem.batches * problem.heads * kernel.query_blocks() * kernel.column_groups();
  launch("attention", qkv.device(), {blocks, kGpuThreads, SharedBlocks<A>::kBytes}, kernel);
}

HOST void forward_gpu(const Problem& problem, const Tensor& qkv, const Tensor& y, const Tensor& lse_bnc) {
  if (flash_fits(problem, {&qkv, &y})) return flash_forward(problem, qkv, y, lse_bnc);
  with_dtype(qkv, [&]<class T>(T) {
    if (problem.width <= 32) return launch_forward<T, 32>(problem, qkv, y, lse_bnc);
    if constexpr (dtype_of<T> != Dtype::f64) {  // f64 has no registers for more
      if (problem.width > 64) return launch_forward<T, 128>(problem, qkv, y, lse_bnc);
    }
    launch_forward<T, 64>(problem, qkv, y, lse_bnc);
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
