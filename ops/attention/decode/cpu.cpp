// Decoding on the CPU: each query needs one pass over the visible keys for all scores, their softmax, and one pass over the values.
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/memory/scratch.h"
#include "cuda/math.h"
#include "ops/attention/cpu/block.h"
#include "ops/attention/decode/decode.h"

namespace ricci::attention_kernels {
namespace {

template <class T> struct CachedTask {
  using A = Accumulator<T>;
  CachedQueries<T> queries;
  A *q, *o, *p;  // [k], [k], one per visible key

  // Query r of head h has index h * count + r.
  HD void operator()(int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end; ++i) run(i / queries.count, i % queries.count);
  }

  HD void run(int64_t head, int64_t r) const {
    const int64_t width = queries.problem.width, first = queries.first_key(queries.first + r),
                  keys = queries.end_key(queries.first + r) - first;
    const T* given = queries.at(queries.q, head, r);
    T* y = queries.at(queries.y, head, r);
#pragma omp simd
    for (int64_t x = 0; x < width; ++x) {
      q[x] = A(given[x]) * A(queries.problem.score_scale);
      o[x] = 0;
    }
    for (int64_t j = 0; j < keys; ++j) p[j] = score(queries.k_cache + queries.slot(head, first + j));
    const A sum = keys > 0 ? softmax(keys) : A(1);  // the output for a query that sees no key is 0
    for (int64_t j = 0; j < keys; ++j) add(p[j], queries.v_cache + queries.slot(head, first + j));
#pragma omp simd
    for (int64_t x = 0; x < width; ++x) y[x] = T(o[x] / sum);
  }

  HD A score(const T* k) const {
    A sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t x = 0; x < queries.problem.width; ++x) sum += q[x] * A(k[x]);
    return sum;
  }
  HD void add(A weight, const T* v) const {
#pragma omp simd
    for (int64_t x = 0; x < queries.problem.width; ++x) o[x] += weight * A(v[x]);
  }
  // Replaces p by exp(p - max p). Returns the sum.
  HD A softmax(int64_t keys) const {
    A largest = p[0], sum = 0;
#pragma omp simd reduction(max : largest)
    for (int64_t j = 0; j < keys; ++j) largest = p[j] > largest ? p[j] : largest;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < keys; ++j) {
      p[j] = math::exp(p[j] - largest);
      sum += p[j];
    }
    return sum;
  }
};

}  // namespace

template <class T> void attend_cached_cpu(const CachedQueries<T>& queries) {
  using A = Accumulator<T>;
  const int64_t width = queries.problem.width, last = queries.first + queries.count - 1,
                most_keys = last + 1 - queries.first_key(queries.first);
  parallel_for_with_scratch(queries.problem.batches * queries.problem.heads * queries.count, tasks_per_chunk(2 * most_keys * width),
      [&](int64_t begin, int64_t end) {
        const Scratch<A> scratch(2 * width + most_keys);
        A* const q = scratch.data();
        run_vectorized(CachedTask<T>{queries, q, q + width, q + 2 * width}, begin, end);
      });
}

template void attend_cached_cpu(const CachedQueries<float>&);
template void attend_cached_cpu(const CachedQueries<double>&);
template void attend_cached_cpu(const CachedQueries<bf16>&);

}  // namespace ricci::attention_kernels
