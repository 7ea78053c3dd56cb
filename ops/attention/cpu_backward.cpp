// The backward on the CPU, from the kept log-sum-exp and without storing probabilities. For every block of 64 queries by
// 64 keys, with q already divided by sqrt(k):
//   p_ts = exp(q_t . k_s - lse_t),   ds_ts = p_ts (dy_t . v_s - delta_t),   delta_t = dy_t . y_t
//   dv_s += sum_t p_ts dy_t,   dk_s += sum_t ds_ts q_t,   dq_t += sum_s ds_ts k_s / sqrt(k)
// Every sum is taken in the order of the blocks, however the work is shared out: the bits do not depend on the threads.
#include "core/cpu/parallel.h"
#include "ops/attention/cpu_block.h"
#include "ops/attention/kernels.h"

namespace ricci::attention_kernels {
namespace {

// How the blocks of one (batch, head) become tasks, and which gradients those compute.
struct Share {
  int64_t queries_per_task, keys_per_task;  // multiples of 64; one of them is everything
  bool want_q, want_kv;
  int64_t step() const { return least(queries_per_task, keys_per_task); }
};

template <class T> struct Tensors {
  const T *dy, *qkv, *y;
  const Accumulator<T>* lse;
  T* dqkv;
};

template <class T> class BackwardTask {
  using A = Accumulator<T>;

 public:
  BackwardTask(const Problem& problem, const Share& share, const Tensors<T>& of)
      : problem_(problem), share_(share), of_(of), row_(padded_width<A>(problem.width)) {
    const int64_t rows = share.queries_per_task * row_, block = kBlock * row_, transposed = kBlock * round_up(problem.width, kColumns);
    scratch_ = Tensor({3 * rows + share.queries_per_task + 3 * block + 2 * transposed + 3 * kBlock * kBlock}, dtype_of<A>);
    A* next = scratch_.data<A>();
    auto take = [&](int64_t n) { return next += n, next - n; };
    q_ = take(rows), dy_ = take(rows), dq_ = take(rows);
    k_ = take(block), dk_ = take(block), dv_ = take(block), k_xs_ = take(transposed), v_xs_ = take(transposed);
    p_ = take(kBlock * kBlock), ds_ = take(kBlock * kBlock), f_ = take(kBlock * kBlock), delta_ = take(share.queries_per_task);
  }

  // The queries t .. end_t and the keys s .. end_s of a head: all that share_ wants of them.
  void run(int64_t head, Interval queries, Interval keys) {
    const int64_t all_keys = problem_.keys(head);
    const Interval seeing = seeing_queries(queries, keys), seen = seen_keys(queries, {keys.begin, least(keys.end, all_keys)});
    if (share_.want_q || seen.begin < seen.end) load_queries(head, seeing);
    for (int64_t s0 = keys.begin; s0 < keys.end; s0 += kBlock) {
      const int64_t n = least(kBlock, problem_.context - s0);
      if (share_.want_kv) clear(dk_, n), clear(dv_, n);
      if (s0 >= seen.begin && s0 < seen.end) add_keys(head, s0, all_keys, seeing);
      if (share_.want_kv) store(head, s0, n, 1, dk_, A(1)), store(head, s0, n, 2, dv_, A(1));
    }
    if (share_.want_q) store(head, queries.begin, queries.end - queries.begin, 0, dq_, A(problem_.scale));
  }

 private:
  // In whole blocks.
  Interval seeing_queries(Interval queries, Interval keys) const {
    return {most(queries.begin, problem_.band.first_query(keys.begin) / kBlock * kBlock),
            least(queries.end, problem_.band.end_query(keys.end - 1, problem_.context))};
  }
  Interval seen_keys(Interval queries, Interval keys) const {
    return {most(keys.begin, problem_.band.first_key(queries.begin) / kBlock * kBlock),
            least(keys.end, problem_.band.end_key(queries.end - 1, problem_.context))};
  }
  void clear(A* m, int64_t rows) const {
    for (int64_t i = 0; i < rows * row_; ++i) m[i] = 0;
  }

  void load_queries(int64_t head, Interval queries) {
    const int64_t d = problem_.d(), width = problem_.width, rows = queries.end - queries.begin;
    const int64_t at = problem_.merged(head) + queries.begin * d;
    pack(of_.qkv + problem_.packed(head) + queries.begin * 3 * d, 3 * d, rows, width, A(problem_.scale), q_, row_);
    pack(of_.dy + at, d, rows, width, A(1), dy_, row_);
    dot_rows(of_.dy + at, of_.y + at, d, rows, width, delta_);
    if (share_.want_q) clear(dq_, rows);
  }

  void add_keys(int64_t head, int64_t s0, int64_t all_keys, Interval queries) {
    const int64_t d = problem_.d(), width = problem_.width, keys = least(kBlock, all_keys - s0);
    const T* k = of_.qkv + problem_.packed(head) + s0 * 3 * d + d;
    transpose(k, 3 * d, keys, width, k_xs_);
    transpose(k + d, 3 * d, keys, width, v_xs_);
    if (share_.want_q) pack(k, 3 * d, keys, width, A(1), k_, row_);
    for (int64_t t0 = queries.begin; t0 < queries.end; t0 += kBlock)
      if (const Tile tile{problem_.band, problem_.context, all_keys, t0, s0}; tile.visible()) add_block(tile, head, t0 - queries.begin);
  }

  void add_block(const Tile& tile, int64_t head, int64_t at) {
    const A *q = q_ + at * row_, *dy = dy_ + at * row_;
    const int64_t width = problem_.width;
    multiply_visible(tile, q, row_, k_xs_, width, p_);
    multiply_visible(tile, dy, row_, v_xs_, width, ds_);
    const bool dropping = problem_.dropout.active();
    if (dropping) weight_factors(tile, problem_.dropout, head, f_), multiply_weights(tile, f_, ds_);
    backward_softmax(tile, p_, ds_, of_.lse + head * problem_.context + tile.t0, delta_ + at);
    if (share_.want_q) add_over_keys(tile, ds_, k_, row_, width, dq_ + at * row_);
    if (!share_.want_kv) return;
    if (dropping) multiply_weights(tile, f_, p_);
    add_over_queries(tile, p_, dy, row_, width, dv_);
    add_over_queries(tile, ds_, q, row_, width, dk_);
  }

  // Into the rows first .. of dq, dk or dv (block 0, 1, 2).
  void store(int64_t head, int64_t first, int64_t rows, int64_t block, const A* from, A factor) const {
    const int64_t d = problem_.d();
    T* to = of_.dqkv + problem_.packed(head) + (first * 3 + block) * d;
    unpack(from, row_, rows, problem_.width, static_cast<const A*>(nullptr), factor, to, 3 * d);
  }

  Problem problem_;
  Share share_;
  Tensors<T> of_;
  int64_t row_;
  Tensor scratch_;
  A *q_, *dy_, *dq_, *delta_;                         // of the task's queries
  A *k_, *k_xs_, *v_xs_, *dk_, *dv_, *p_, *ds_, *f_;  // of one block of keys
};

template <class T> void run_share(const Problem& problem, const Share& share, const Tensors<T>& of) {
  const int64_t c = problem.context, step = share.step(), parts = (c + step - 1) / step;
  parallel_for(problem.batches * problem.heads * parts, tasks_per_chunk(5 * step * c * problem.width), [&](int64_t begin, int64_t end) {
    BackwardTask<T> task(problem, share, of);
    for (int64_t i = begin; i < end; ++i) {
      const Interval part{i % parts * step, least(c, (i % parts + 1) * step)}, all{0, c};
      const bool by_keys = share.keys_per_task < share.queries_per_task;
      task.run(i / parts, by_keys ? all : part, by_keys ? part : all);
    }
  });
}

}  // namespace

void backward_cpu(const Problem& problem, const Tensor& dy, const Tensor& qkv, const Tensor& y, const Tensor& lse_bnc, const Tensor& dqkv) {
  const int64_t everything = round_up(problem.context, kBlock), heads = problem.batches * problem.heads, threads = thread_count();
  const int64_t rounds = (heads + threads - 1) / threads;
  with_dtype(qkv, [&]<class T>(T) {
    const Tensors<T> of{dy.data<T>(), qkv.data<T>(), y.data<T>(), lse_bnc.data<Accumulator<T>>(), dqkv.data<T>()};
    // Five products per block when a task has a whole head. With few heads for the threads there are two rounds of smaller
    // tasks, the first for dk and dv, the second for dq, with seven products in all.
    if (7 * heads >= 5 * rounds * threads) return run_share(problem, {everything, everything, true, true}, of);
    run_share(problem, {everything, kBlock, false, true}, of);
    run_share(problem, {kBlock, everything, true, false}, of);
  });
}

}  // namespace ricci::attention_kernels
