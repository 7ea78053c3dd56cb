// Attention of new positions against the keys and values kept from earlier ones:
//   y_t = sum_s p_ts v_s over the visible s <= t,  p_ts = softmax of q_t . k_s / sqrt(k)
// A query reads every key and value once: this is a matter of reading memory in order, not of products.
//   bytes   4 c k per head and new position in bf16 for c kept ones of width k, twice in f32;  FLOPs as many
//   floor   12 layers of 12 heads of 64, c = 1024 in bf16 on an H200: 38 MB at 4.8 TB/s 0.008 ms per sequence
#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "cuda/math.h"
#include "cuda/verbs/elements.h"
#include "cuda/verbs/reduce.h"
#include "ops/attention/decode.h"

namespace ricci {
namespace attention_kernels {

template <class T> struct Append {
  CachedQueries<T> of;
  HD void operator()(int64_t i) const {
    const int64_t width = of.problem.width, x = i % width, r = i / width % of.count, head = i / width / of.count;
    const T* k = of.q(head, r) + of.problem.d() + x;
    const int64_t to = of.slot(head, of.first + r) + x;
    of.k_cache[to] = k[0];
    of.v_cache[to] = k[of.problem.d()];
  }
};

// A thread block per query, 64 keys at a time: a warp per key for the scores, a thread per column for the output.
template <class T> struct CachedKernel {
  static constexpr int kThreads = 128, kWarps = kThreads / 32, kKeys = 64;
  using A = Accumulator<T>;
  static constexpr A kLowest = -A(__builtin_huge_val());
  CachedQueries<T> of;

  __device__ void operator()() const {
    SHARED(A, p, [kKeys]);
    const int64_t head = blockIdx.x / of.count, r = blockIdx.x % of.count, t = of.first + r, width = of.problem.width;
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    A *const q_x = dynamic_shared<A>(), *const o_x = q_x + width;
    for (int64_t x = threadIdx.x; x < width; x += kThreads) q_x[x] = A(of.q(head, r)[x]) * A(of.problem.scale), o_x[x] = 0;
    A m = kLowest, l = 0;
    for (int64_t s0 = of.problem.band.first_key(t); s0 <= t; s0 += kKeys) {
      const int keys = static_cast<int>(t + 1 - s0 < kKeys ? t + 1 - s0 : kKeys);
      __syncthreads();  // q has been written, the weights before have been read
      for (int j = warp; j < kKeys; j += kWarps) {
        A sum = 0;
        for (int64_t x = lane; x < width && j < keys; x += 32) sum += q_x[x] * A(of.k_cache[of.slot(head, s0 + j) + x]);
        sum = warp_reduce(sum, Sum{});
        if (lane == 0) p[j] = j < keys ? sum : kLowest;
      }
      __syncthreads();
      const A low = p[lane], high = p[lane + 32], next = Max{}(m, warp_reduce(Max{}(low, high), Max{}));
      const A low_weight = math::exp(low - next), high_weight = math::exp(high - next), factor = math::exp(m - next);
      l = l * factor + warp_reduce(low_weight + high_weight, Sum{});
      m = next;
      __syncthreads();  // every warp has read the scores
      if (warp == 0) p[lane] = low_weight, p[lane + 32] = high_weight;
      __syncthreads();
      for (int64_t x = threadIdx.x; x < width; x += kThreads) {
        A sum = o_x[x] * factor;
        for (int j = 0; j < keys; ++j) sum += p[j] * A(of.v_cache[of.slot(head, s0 + j) + x]);
        o_x[x] = sum;
      }
    }
    for (int64_t x = threadIdx.x; x < width; x += kThreads) of.y_of(head, r)[x] = T(o_x[x] / l);
  }
};

HOST void check_caches(const Problem& problem, const Tensor& qkv, const Tensor& k_cache_bnsk, const Tensor& v_cache_bnsk, int64_t past,
                       const AttentionOptions& options) {
  const char* op = "attention_cached";
  Dims dims;
  dims.bind(op, "k_cache_bnsk, v_cache_bnsk", {&k_cache_bnsk, &v_cache_bnsk});
  if (!options.causal) fail("{}: new positions cannot see later ones, expected causal attention", {op});
  if (options.lengths_b) fail("{}: the new positions are the last of their sequences, expected no lengths", {op});
  if (past < 0) fail("{}: past is {}, expected 0 or more", {op, past});
  if (dims['b'] != problem.batches || dims['n'] != problem.heads || dims['k'] != problem.width)
    fail("{}: k_cache_bnsk{} expected [{} {} s {}]", {op, show(k_cache_bnsk.shape()), problem.batches, problem.heads, problem.width});
  for (const Tensor* cache : {&k_cache_bnsk, &v_cache_bnsk})
    if (cache->dtype() != qkv.dtype() || cache->device() != qkv.device())
      fail("{}: a cache is {} on {} but qkv_bcx is {} on {}",
           {op, name_of(cache->dtype()), name_of(cache->device()), name_of(qkv.dtype()), name_of(qkv.device())});
  const int64_t positions = past + problem.context, needed = options.window && options.window < positions ? options.window : positions;
  if (dims['s'] < needed) fail("{}: the caches have {} slots, {} positions need {}", {op, dims['s'], positions, needed});
}

template <class T> void append(const CachedQueries<T>& of, Device device) {
  for_each_element("attention_cached: append", device, of.problem.batches * of.problem.heads * of.count * of.problem.width, Append<T>{of});
}

template <class T> void attend_cached(const CachedQueries<T>& of, Device device) {
  if (device == Device::cpu) return attend_cached_cpu(of);
  const int bytes = static_cast<int>(2 * of.problem.width * static_cast<int64_t>(sizeof(Accumulator<T>)));
  launch("attention_cached", device, {of.problem.batches * of.problem.heads * of.count, CachedKernel<T>::kThreads, bytes},
         CachedKernel<T>{of});
}

// As many new positions at a time as fit without overwriting what the first of them sees.
template <class T> void attend_in_steps(CachedQueries<T> of, Device device) {
  const int64_t past = of.first;
  for (; of.row < of.problem.context; of.row += of.count) {
    of.first = past + of.row;
    const int64_t fit = of.capacity - (of.first - of.problem.band.first_key(of.first)), left = of.problem.context - of.row;
    of.count = fit < left ? fit : left;
    append(of, device);
    attend_cached(of, device);
  }
}

}  // namespace attention_kernels

using namespace attention_kernels;

HOST Tensor attention_cached(const Arg& qkv_bcx, Tensor& k_cache_bnsk, Tensor& v_cache_bnsk, int64_t past,
                             const AttentionOptions& options) {
  const Problem problem = problem_of("attention_cached", qkv_bcx, options);
  check_caches(problem, qkv_bcx, k_cache_bnsk, v_cache_bnsk, past, options);
  const bool from_start = past == 0;  // then everything that is visible is at hand, and the blocked kernels are faster
  const Tensor y = from_start ? forward(problem, qkv_bcx).y_bcd : like(qkv_bcx, {problem.batches, problem.context, problem.d()});
  if (qkv_bcx.size() > 0)
    with_dtype(qkv_bcx, [&]<class T>(T) {
      CachedQueries<T> of{
          problem, qkv_bcx.data<T>(), k_cache_bnsk.data<T>(), v_cache_bnsk.data<T>(), y.data<T>(), k_cache_bnsk.shape()[2], 0, past, 0};
      if (!from_start) return attend_in_steps(of, qkv_bcx.device());
      of.count = problem.context < of.capacity ? problem.context : of.capacity;
      of.row = of.first = problem.context - of.count;
      append(of, qkv_bcx.device());
    });
  k_cache_bnsk.written(), v_cache_bnsk.written();
  return record("attention_cached", {qkv_bcx}, y, keep(), no_backward);
}

CUDA_ELEMENTS(Append);
CUDA_KERNEL(CachedKernel<float>);
CUDA_KERNEL(CachedKernel<double>);
CUDA_KERNEL(CachedKernel<bf16>);

}  // namespace ricci
