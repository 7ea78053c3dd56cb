// Attention of new positions to the keys and values of earlier ones:
//   y_t = sum_j p_tj v_j,  p_tj = softmax of z q_t . k_j over the visible j <= t
// Memory bandwidth limits the time: a query reads every key and value once.
//   bytes   4 c k per head and new position in bf16 for c kept positions of width k, twice this in f32;  FLOPs 4 c k
#include "ops/attention/decode/decode.h"

#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "cuda/math.h"
#include "cuda/verbs/elements.h"
#include "cuda/verbs/reduce.h"

namespace ricci {
namespace attention_kernels {

template <class T> struct Append {
  CachedQueries<T> queries;
  HD void operator()(int64_t i) const {
    const int64_t width = queries.problem.width, x = i % width, r = i / width % queries.count,
                  head = i / width / queries.count * queries.problem.group;
    const int64_t position = queries.slot(head, queries.first + r) + x;
    queries.k_cache[position] = queries.at(queries.k, head, r)[x];
    if (queries.v_cache != queries.k_cache) queries.v_cache[position] = queries.at(queries.v, head, r)[x];
  }
};

// A thread block processes one query, 64 keys at a time, with a warp per key for the scores and a thread per column for the output.
template <class T> struct CachedKernel {
  static constexpr int kThreads = 128, kWarps = kThreads / 32, kKeys = 64;
  using A = Accumulator<T>;
  static constexpr A kLowest = -A(__builtin_huge_val());
  CachedQueries<T> queries;

  __device__ void operator()() const {
    SHARED(A, p, [kKeys]);
    const int64_t head = blockIdx.x / queries.count, r = blockIdx.x % queries.count, width = queries.problem.width;
    const int64_t first = queries.first_key(queries.first + r), end = queries.end_key(queries.first + r);
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    A *const q_x = dynamic_shared<A>(), *const o_x = q_x + width;
    for (int64_t x = threadIdx.x; x < width; x += kThreads) {
      q_x[x] = A(queries.at(queries.q, head, r)[x]) * A(queries.problem.score_scale);
      o_x[x] = 0;
    }
    A m = kLowest, l = 0;
    for (int64_t j0 = first; j0 < end; j0 += kKeys) {
      const int keys = static_cast<int>(end - j0 < kKeys ? end - j0 : kKeys);
      __syncthreads();  // q has been written; the earlier weights have been read
      for (int j = warp; j < kKeys; j += kWarps) {
        A sum = 0;
        for (int64_t x = lane; x < width && j < keys; x += 32) sum += q_x[x] * A(queries.k_cache[queries.slot(head, j0 + j) + x]);
        sum = warp_reduce(sum, Sum{});
        if (lane == 0) p[j] = j < keys ? sum : kLowest;
      }
      __syncthreads();
      const A low = p[lane], high = p[lane + 32], next = Max{}(m, warp_reduce(Max{}(low, high), Max{}));
      const A low_weight = math::exp(low - next), high_weight = math::exp(high - next), factor = math::exp(m - next);
      l = l * factor + warp_reduce(low_weight + high_weight, Sum{});
      m = next;
      __syncthreads();  // every warp has read the scores
      if (warp == 0) {
        p[lane] = low_weight;
        p[lane + 32] = high_weight;
      }
      __syncthreads();
      for (int64_t x = threadIdx.x; x < width; x += kThreads) {
        A sum = o_x[x] * factor;
        for (int j = 0; j < keys; ++j) sum += p[j] * A(queries.v_cache[queries.slot(head, j0 + j) + x]);
        o_x[x] = sum;
      }
    }
    // The output for a query that sees no key is 0.
    for (int64_t x = threadIdx.x; x < width; x += kThreads) queries.at(queries.y, head, r)[x] = T(l == 0 ? A(0) : o_x[x] / l);
  }
};

HOST void check_caches(
    const Checked& checked, const Tensor& k_cache_bnsk, const Tensor& v_cache_bnsk, int64_t past, const AttentionOptions& options) {
  const char* op = "attention_cached";
  const Problem& problem = checked.problem;
  const int64_t heads = problem.of_key_heads().heads;
  Dims dims;
  dims.bind(op, "q_bcx, k_cache_bnsk, v_cache_bnsk", {checked.inputs[0], k_cache_bnsk, v_cache_bnsk});
  if (problem.sees.least < 0) fail("{}: a position sees later positions, expected causal attention", {op});
  if (problem.sees.cell != 1) fail("{}: the keys are cells of {} tokens, expected single tokens", {op, problem.sees.cell});
  if (options.lengths_b) fail("{}: lengths_b is given, expected none (the new positions are the last of their sequences)", {op});
  if (problem.keys != problem.queries)
    fail("{}: there are {} new queries and {} new keys, expected the same number", {op, problem.queries, problem.keys});
  if (past < 0 || past > INT64_MAX - problem.queries) fail("{}: past is {}, expected 0 .. {}", {op, past, INT64_MAX - problem.queries});
  if (dims['b'] != problem.batches || dims['n'] != heads || dims['k'] != problem.width)
    fail("{}: k_cache_bnsk is {}, expected [{} {} s {}]", {op, show(k_cache_bnsk.shape()), problem.batches, heads, problem.width});
  if (k_cache_bnsk.size() > 0 && k_cache_bnsk.raw() == v_cache_bnsk.raw() && !checked.layout.same(1, 2))
    fail("{}: k and v share a cache, expected k and v to be the same columns of the same tensor", {op});
  const int64_t positions = past + problem.queries, needed = problem.sees.most < positions ? problem.sees.most : positions;
  if (dims['s'] < needed) fail("{}: the caches have {} slots, but {} positions need {}", {op, dims['s'], positions, needed});
}

template <class T> void append(const CachedQueries<T>& queries, Device device) {
  for_each_element("attention_cached: append", device,
      queries.problem.batches * queries.problem.of_key_heads().heads * queries.count * queries.problem.width, Append<T>{queries});
}

template <class T> void attend_cached(const CachedQueries<T>& queries, Device device) {
  if (device == Device::cpu) return attend_cached_cpu(queries);
  const int bytes = static_cast<int>(2 * queries.problem.width * static_cast<int64_t>(sizeof(Accumulator<T>)));
  launch("attention_cached", device, {queries.problem.batches * queries.problem.heads * queries.count, CachedKernel<T>::kThreads, bytes},
      CachedKernel<T>{queries});
}

// Processes new positions in steps, each as long as possible without overwriting keys that its first position sees.
template <class T> void attend_in_steps(CachedQueries<T> queries, Device device) {
  const int64_t past = queries.first;
  for (; queries.row < queries.problem.queries; queries.row += queries.count) {
    queries.first = past + queries.row;
    const int64_t fit = queries.capacity - (queries.first - queries.first_key(queries.first)), left = queries.problem.queries - queries.row;
    queries.count = fit < left ? fit : left;
    append(queries, device);
    attend_cached(queries, device);
  }
}

// Writes the last positions, up to the capacity, to the caches. At the start of sequences, all keys are new, and `forward` has computed y.
template <class T> void append_last(CachedQueries<T> queries, Device device) {
  queries.count = queries.problem.queries < queries.capacity ? queries.problem.queries : queries.capacity;
  queries.row = queries.first = queries.problem.queries - queries.count;
  append(queries, device);
}

}  // namespace attention_kernels

using namespace attention_kernels;

HOST Tensor attention_cached(const ColumnSlice& q, const ColumnSlice& k, const ColumnSlice& v, Tensor& k_cache_bnsk, Tensor& v_cache_bnsk,
    int64_t past, const Visibility& sees, const AttentionOptions& options) {
  const Checked checked = check("attention_cached", q, k, v, sees, options);
  check_caches(checked, k_cache_bnsk, v_cache_bnsk, past, options);
  const Problem& problem = checked.problem;
  const QueryKeyValue inputs = checked.slices();
  const Tensor y = past == 0 ? forward(problem, inputs).y_bcd : like(q.tensor, {problem.batches, problem.queries, problem.d()});
  if (y.size() > 0)
    with_dtype(y, [&]<class T>(T) {
      const CachedQueries<T> queries{problem, head_rows<const T>(inputs.q), head_rows<const T>(inputs.k), head_rows<const T>(inputs.v),
          head_rows<T>({y}), k_cache_bnsk.data<T>(), v_cache_bnsk.data<T>(), k_cache_bnsk.shape()[2], 0, past, 0};
      past == 0 ? append_last(queries, y.device()) : attend_in_steps(queries, y.device());
    });
  k_cache_bnsk.written();
  v_cache_bnsk.written();
  return record("attention_cached", checked.inputs, y, keep(), no_backward);
}

CUDA_ELEMENTS(Append);
CUDA_KERNEL(CachedKernel<float>);
CUDA_KERNEL(CachedKernel<double>);
CUDA_KERNEL(CachedKernel<bf16>);

}  // namespace ricci
