// The forward pass on the CPU. A task owns some queries of one head, packs their keys and values block by block, and adds each block with
// the running softmax. The blocks of a query are added in a fixed order, however queries are divided among threads, so the results are
// bitwise identical for any number of threads.
#include "core/cpu/parallel.h"
#include "core/memory/scratch.h"
#include "ops/attention/cpu/running_softmax.h"

namespace ricci::attention_kernels {
namespace {

template <class T> struct Tensors {
  HeadRows<const T> q, k, v;
  HeadRows<T> y;
  Accumulator<T>* lse;
};

template <class T> class ForwardTask {
  using A = Accumulator<T>;

 public:
  ForwardTask(const Problem& problem, const Tensors<T>& tensors, int64_t queries)
      : problem_(problem),
        tensors_(tensors),
        row_(packed_row<A>(problem.width)),
        transposed_(kBlock * round_up(problem.width, kColumns)),
        packed_(queries * row_ + transposed_ + kBlock * row_),
        sums_(queries * (row_ + 2) + 2 * kBlock * kBlock),
        q_(packed_.data()),
        k_xj_(q_ + queries * row_),
        v_(k_xj_ + transposed_),
        o_(sums_.data()),
        m_(o_ + queries * row_),
        l_(m_ + queries),
        s_(l_ + queries),
        f_(s_ + kBlock * kBlock) {}

  void run(int64_t head, int64_t first, int64_t end) const {
    const int64_t width = problem_.width, n = end - first;
    pack_rows(tensors_.q.of_head(problem_, head) + first * tensors_.q.row, tensors_.q.row, n, width, A(problem_.score_scale), q_, row_);
    for (int64_t i = 0; i < n * row_; ++i) o_[i] = 0;
    for (int64_t i = 0; i < n; ++i) {
      m_[i] = kLowest<A>;
      l_[i] = 0;
    }
    const T *k = tensors_.k.of_head(problem_, head), *v = tensors_.v.of_head(problem_, head);
    const int64_t all_keys = problem_.keys_of(head), end_key = problem_.sees.end_key(end - 1, all_keys);
    for (int64_t j0 = problem_.sees.first_key(first) / kBlock * kBlock; j0 < end_key; j0 += kBlock) {
      const int64_t keys = min(kBlock, all_keys - j0);
      pack_columns(k + j0 * tensors_.k.row, tensors_.k.row, keys, width, k_xj_);
      pack_rows(v + j0 * tensors_.v.row, tensors_.v.row, keys, width, A(1), v_, row_);
      for (int64_t t0 = first; t0 < end; t0 += kBlock)
        if (Tile::visible(problem_, all_keys, t0, j0)) add_block(Tile(problem_, all_keys, t0, j0), head, t0 - first);
    }
    finish(tensors_.lse + head * problem_.queries + first, n);
    unpack(o_, row_, n, width, l_, A(1), tensors_.y.of_head(problem_, head) + first * tensors_.y.row, tensors_.y.row);
  }

 private:
  void add_block(const Tile& tile, int64_t head, int64_t first_row) const {
    A* o = o_ + first_row * row_;
    multiply(tile, q_ + first_row * row_, row_, k_xj_, problem_.width, s_);
    with_vectors([&](auto bytes) {
      const RunningSoftmax<A, bytes()> softmax{tile, s_, m_ + first_row, l_ + first_row, o, row_, problem_.width};
      run_vectorized(softmax, 0, tile.queries());
    });
    if (problem_.dropout.active()) {
      weight_factors(tile, problem_, head, f_);
      multiply_weights(tile, f_, s_);
    }
    add_over_keys(tile, s_, v_, row_, problem_.width, o);
  }

  // Stores lse and replaces l by 1 / l. For a query that sees no key, l is 0. Such a query gets the factor 0, so its output is 0, and an
  // infinite lse, so p = 0 in the backward pass.
  void finish(A* lse, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) {
      lse[i] = l_[i] == 0 ? A(__builtin_huge_val()) : m_[i] + math::log(l_[i]);
      l_[i] = l_[i] == 0 ? A(0) : 1 / l_[i];
    }
  }

  Problem problem_;
  Tensors<T> tensors_;
  int64_t row_, transposed_;
  Scratch<A> packed_, sums_;
  A *q_, *k_xj_, *v_;         // k and v hold one block of keys
  A *o_, *m_, *l_, *s_, *f_;  // s, and f for dropout, hold one block of keys
};

// Returns the number of queries of a task: all queries of a head if this occupies all threads. Else, a head has multiple
// tasks, and each task packs the keys again.
int64_t choose_queries(const Problem& problem) {
  const int64_t blocks = (problem.queries + kBlock - 1) / kBlock, heads = problem.batches * problem.heads;
  const int64_t wanted = thread_count() == 1 ? 1 : 4 * int64_t{thread_count()};
  return kBlock * max<int64_t>(1, min(blocks, blocks * heads / wanted));
}

}  // namespace

void forward_cpu(const Problem& problem, const QueryKeyValue& inputs, const Outputs& out) {
  with_dtype(out.y_bcd, [&]<class T>(T) {
    const Tensors<T> tensors{head_rows<const T>(inputs.q), head_rows<const T>(inputs.k), head_rows<const T>(inputs.v),
        head_rows<T>({out.y_bcd}), out.lse_bnc.data<Accumulator<T>>()};
    const int64_t queries = choose_queries(problem), tasks = (problem.queries + queries - 1) / queries;
    const int64_t grain = tasks_per_chunk(2 * queries * problem.keys * problem.width);
    parallel_for_with_scratch(problem.batches * problem.heads * tasks, grain, [&](int64_t begin, int64_t end) {
      const ForwardTask<T> task(problem, tensors, queries);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % tasks * queries;
        task.run(i / tasks, first, min(first + queries, problem.queries));
      }
    });
  });
}

}  // namespace ricci::attention_kernels
