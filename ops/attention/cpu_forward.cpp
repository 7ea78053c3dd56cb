// The forward on the CPU. A task owns some queries of one (batch, head) and goes over the blocks of 64 keys they see:
//   s = q k^T / sqrt(k),  m' = max(m, max_s s),  p = exp(s - m'),  l = l exp(m - m') + sum_s p,  o = o exp(m - m') + p v
// and at the end y = o / l,  lse = m + log l. The order of a query's blocks is fixed, however queries are shared out.
#include "core/cpu/parallel.h"
#include "cuda/math.h"
#include "ops/attention/cpu_block.h"
#include "ops/attention/kernels.h"

namespace ricci::attention_kernels {
namespace {

template <class T> class ForwardTask {
  using A = Accumulator<T>;

 public:
  ForwardTask(const Problem& problem, int64_t queries)
      : problem_(problem),
        row_(padded_width<A>(problem.width)),
        transposed_(kBlock * round_up(problem.width, kColumns)),
        scratch_({queries * (2 * row_ + 2) + transposed_ + kBlock * (row_ + 2 * kBlock)}, dtype_of<A>),
        q_(scratch_.data<A>()),
        o_(q_ + queries * row_),
        m_(o_ + queries * row_),
        l_(m_ + queries),
        k_xs_(l_ + queries),
        v_(k_xs_ + transposed_),
        s_(v_ + kBlock * row_),
        f_(s_ + kBlock * kBlock) {}

  // The queries first .. end of a head.
  void run(int64_t head, int64_t first, int64_t end, const T* qkv, T* y, A* lse) const {
    const int64_t d = problem_.d(), width = problem_.width, n = end - first;
    const T* q = qkv + problem_.packed(head);
    pack(q + first * 3 * d, 3 * d, n, width, A(problem_.scale), q_, row_);
    for (int64_t i = 0; i < n * row_; ++i) o_[i] = 0;
    for (int64_t i = 0; i < n; ++i) m_[i] = -A(__builtin_huge_val()), l_[i] = 0;
    const int64_t all_keys = problem_.keys(head), end_key = problem_.band.end_key(end - 1, all_keys);
    for (int64_t s0 = problem_.band.first_key(first) / kBlock * kBlock; s0 < end_key; s0 += kBlock) {
      const int64_t keys = least(kBlock, all_keys - s0);
      const T* k = q + s0 * 3 * d + d;
      transpose(k, 3 * d, keys, width, k_xs_);
      pack(k + d, 3 * d, keys, width, A(1), v_, row_);
      for (int64_t t0 = first; t0 < end; t0 += kBlock)
        if (const Tile tile{problem_.band, problem_.context, all_keys, t0, s0}; tile.visible()) add_block(tile, head, t0 - first);
    }
    finish(lse + head * problem_.context + first, n);
    unpack(o_, row_, n, width, l_, A(1), y + problem_.merged(head) + first * d, d);
  }

 private:
  void add_block(const Tile& tile, int64_t head, int64_t at) const {
    A* o = o_ + at * row_;
    multiply_visible(tile, q_ + at * row_, row_, k_xs_, problem_.width, s_);
    forward_softmax(tile, s_, m_ + at, l_ + at, o, row_, problem_.width);
    if (problem_.dropout.active()) {
      weight_factors(tile, problem_.dropout, head, f_);
      multiply_weights(tile, f_, s_);
    }
    add_over_keys(tile, s_, v_, row_, problem_.width, o);
  }

  // l becomes 1 / l. A query that sees no key has l = 0; with 0 in place of 1 / l its output is 0, and with an infinite lse
  // the backward finds p = 0.
  void finish(A* lse, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) {
      lse[i] = l_[i] == 0 ? A(__builtin_huge_val()) : m_[i] + math::log(l_[i]);
      l_[i] = l_[i] == 0 ? A(0) : 1 / l_[i];
    }
  }

  Problem problem_;
  int64_t row_, transposed_;
  Tensor scratch_;
  A *q_, *o_, *m_, *l_;     // of the task's queries
  A *k_xs_, *v_, *s_, *f_;  // of one block of keys
};

// Whole heads where there are enough of them for the threads; otherwise several tasks per head, which pack the keys again.
int64_t choose_queries(const Problem& problem) {
  const int64_t blocks = (problem.context + kBlock - 1) / kBlock, heads = problem.batches * problem.heads;
  const int64_t wanted = thread_count() == 1 ? 1 : 4 * int64_t{thread_count()};
  return kBlock * most<int64_t>(1, least(blocks, blocks * heads / wanted));
}

}  // namespace

void forward_cpu(const Problem& problem, const Tensor& qkv, const Tensor& y, const Tensor& lse_bnc) {
  with_dtype(qkv, [&]<class T>(T) {
    const int64_t queries = choose_queries(problem), parts = (problem.context + queries - 1) / queries;
    const int64_t grain = tasks_per_chunk(2 * queries * problem.context * problem.width);
    parallel_for(problem.batches * problem.heads * parts, grain, [&](int64_t begin, int64_t end) {
      const ForwardTask<T> task(problem, queries);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % parts * queries;
        task.run(i / parts, first, least(first + queries, problem.context), qkv.data<T>(), y.data<T>(), lse_bnc.data<Accumulator<T>>());
      }
    });
  });
}

}  // namespace ricci::attention_kernels
