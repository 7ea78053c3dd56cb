// The backward pass on the CPU, computed from the kept log-sum-exp without storing probabilities. For every block of 64 queries by 64 keys,
// with the factor z of the scores,
//   p_tj = exp(z q_t . k_j - lse_t),   ds_tj = p_tj (dy_t . v_j - delta_t),   delta_t = dy_t . y_t
//   dv_j += sum_t p_tj dy_t,   dk_j += z sum_t ds_tj q_t,   dq_t += z sum_j ds_tj k_j
// If query heads share a head of keys, one task processes all these query heads in order, for every block of keys, and adds their
// gradients. Every sum is computed in the order of the blocks, however the work is divided, so the results are bitwise identical for any
// number of threads.
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/memory/scratch.h"
#include "cuda/math.h"
#include "ops/attention/cpu/block.h"

namespace ricci::attention_kernels {
namespace {

// Replaces scores and dp_ij = dy_i . v_j by p_ij = exp(s_ij - lse_i) and p_ij (dp_ij - delta_i), both 0 for pairs that are not visible.
template <class A> struct BackwardSoftmax {
  Tile tile;
  A *s, *dp;
  const A *lse, *delta;

  HD void operator()(int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end; ++i) {
      A *s_j = s + i * kBlock, *dp_j = dp + i * kBlock;
      const Columns columns(tile, i);
      const A lse_i = lse[i], delta_i = delta[i];
#pragma omp simd
      for (int j = columns.begin; j < columns.end; ++j) {
        const A p = math::exp(s_j[j] - lse_i), ds = p * (dp_j[j] - delta_i);
        s_j[j] = columns.sees(j) ? p : A(0);
        dp_j[j] = columns.sees(j) ? ds : A(0);
      }
    }
  }
};

// The division of one head's blocks into tasks, and the gradients that the tasks compute.
struct Share {
  int64_t queries, keys;  // in a task: multiples of 64, and at least one of the two covers all
  bool want_q, want_kv;
  // The number of query heads of a task: all that share its keys if the task sums the gradients of keys, else one.
  int64_t heads(const Problem& problem) const { return want_kv ? problem.group : 1; }
};

template <class T> struct Tensors {
  HeadRows<const T> q, k, v, y, dy;
  const Accumulator<T>* lse;
  HeadRows<T> dq, dk, dv;
  bool one_load_of_k_and_v() const { return k.data == v.data && k.row == v.row; }
  bool one_sum_of_k_and_v() const { return dk.data == dv.data; }
  bool add_dq() const { return dq.data == dk.data || dq.data == dv.data; }  // dk and dv are stored first
};

template <class T> class BackwardTask {
  using A = Accumulator<T>;

 public:
  BackwardTask(const Problem& problem, const Share& share, const Tensors<T>& tensors)
      : problem_(problem),
        share_(share),
        tensors_(tensors),
        gaps_(problem.sees.most - problem.sees.least < problem.sees.cell),
        row_(packed_row<A>(problem.width)),
        transposed_(kBlock * round_up(problem.width, kColumns)),
        queries_(share.heads(problem) * share.queries),
        packed_(queries_ * 2 * row_ + kBlock * row_ + 2 * transposed_),
        sums_(queries_ * (row_ + 1) + kBlock * (2 * row_ + 3 * kBlock)) {
    const int64_t rows = queries_ * row_, block = kBlock * row_;
    q_ = packed_.data();
    dy_ = q_ + rows;
    k_ = dy_ + rows;
    k_xj_ = k_ + block;
    v_xj_ = k_xj_ + transposed_;
    A* next = sums_.data();
    auto take = [&](int64_t n) {
      next += n;
      return next - n;
    };
    dq_ = take(rows);
    dk_ = take(block);
    dv_ = take(block);
    p_ = take(kBlock * kBlock);
    ds_ = take(kBlock * kBlock);
    f_ = take(kBlock * kBlock);
    delta_ = take(queries_);
    if (tensors.one_load_of_k_and_v()) v_xj_ = k_xj_;
    if (tensors.one_sum_of_k_and_v()) dv_ = dk_;
  }

  // Computes the gradients that share_ requests, for some queries of the heads of task `number` and some keys.
  void run(int64_t number, Interval queries, Interval keys) {
    const int64_t heads = share_.heads(problem_), head = number * heads, all_keys = problem_.keys_of(head);
    const Interval seeing = seeing_queries(queries, keys), seen = seen_keys(queries, {keys.begin, min(keys.end, all_keys)});
    const Interval loaded = share_.want_q ? queries : seeing;
    for (int64_t n = 0; n < heads && (share_.want_q || seen.begin < seen.end); ++n) load_queries(head + n, loaded, n * share_.queries);
    for (int64_t j0 = keys.begin; j0 < keys.end; j0 += kBlock) {
      const int64_t n = min(kBlock, problem_.keys - j0);
      if (share_.want_kv) clear_key_gradients(n);
      if (j0 >= seen.begin && j0 < seen.end) {
        load_keys(head, j0, min(kBlock, all_keys - j0));
        for (int64_t m = 0; m < heads; ++m) add_keys(head + m, j0, all_keys, m * share_.queries - loaded.begin, seeing);
      }
      if (share_.want_kv) store_key_gradients(head, j0, n);
    }
    for (int64_t n = 0; n < heads && share_.want_q; ++n)
      store(tensors_.dq, head + n, queries.begin, queries.end - queries.begin, dq_ + n * share_.queries * row_, A(problem_.score_scale),
          tensors_.add_dq());
  }

 private:
  // Return the given queries that see any of the given keys, and the given keys that are seen, both in full blocks.
  Interval seeing_queries(Interval queries, Interval keys) const {
    return {max(queries.begin, problem_.sees.first_query(keys.begin) / kBlock * kBlock),
        min(queries.end, problem_.sees.end_query(keys.end - 1, problem_.queries))};
  }
  Interval seen_keys(Interval queries, Interval keys) const {
    return {max(keys.begin, problem_.sees.first_key(queries.begin) / kBlock * kBlock),
        min(keys.end, problem_.sees.end_key(queries.end - 1, problem_.keys))};
  }
  void clear(A* m, int64_t rows) const {
    for (int64_t i = 0; i < rows * row_; ++i) m[i] = 0;
  }
  void clear_key_gradients(int64_t rows) const {
    clear(dk_, rows);
    if (dv_ != dk_) clear(dv_, rows);
  }

  void load_queries(int64_t head, Interval queries, int64_t first_row) {
    const int64_t width = problem_.width, rows = queries.end - queries.begin;
    const T *dy = tensors_.dy.of_head(problem_, head) + queries.begin * tensors_.dy.row,
            *y = tensors_.y.of_head(problem_, head) + queries.begin * tensors_.y.row;
    pack_rows(tensors_.q.of_head(problem_, head) + queries.begin * tensors_.q.row, tensors_.q.row, rows, width, A(problem_.score_scale),
        q_ + first_row * row_, row_);
    pack_rows(dy, tensors_.dy.row, rows, width, A(1), dy_ + first_row * row_, row_);
    dot_rows(dy, tensors_.dy.row, y, tensors_.y.row, rows, width, delta_ + first_row);
    if (share_.want_q) clear(dq_ + first_row * row_, rows);
  }

  void load_keys(int64_t head, int64_t j0, int64_t keys) {
    const int64_t width = problem_.width;
    const T *k = tensors_.k.of_head(problem_, head) + j0 * tensors_.k.row, *v = tensors_.v.of_head(problem_, head) + j0 * tensors_.v.row;
    pack_columns(k, tensors_.k.row, keys, width, k_xj_);
    if (v_xj_ != k_xj_) pack_columns(v, tensors_.v.row, keys, width, v_xj_);
    if (share_.want_q) pack_rows(k, tensors_.k.row, keys, width, A(1), k_, row_);
  }

  // Adds one block of keys to the gradients. Query t is row t + first_row of q_, dy_ and dq_.
  void add_keys(int64_t head, int64_t j0, int64_t all_keys, int64_t first_row, Interval queries) {
    for (int64_t t0 = queries.begin; t0 < queries.end; t0 += kBlock)
      if (Tile::visible(problem_, all_keys, t0, j0)) add_block(Tile(problem_, all_keys, t0, j0), head, t0 + first_row);
  }

  void add_block(const Tile& tile, int64_t head, int64_t first_row) {
    const A *q = q_ + first_row * row_, *dy = dy_ + first_row * row_;
    const int64_t width = problem_.width;
    if (gaps_) clear_weights();
    multiply(tile, q, row_, k_xj_, width, p_);
    multiply(tile, dy, row_, v_xj_, width, ds_);
    const bool dropping = problem_.dropout.active();
    if (dropping) {
      weight_factors(tile, problem_, head, f_);
      multiply_weights(tile, f_, ds_);
    }
    const A* const lse = tensors_.lse + head * problem_.queries + tile.t0;
    run_vectorized(BackwardSoftmax<A>{tile, p_, ds_, lse, delta_ + first_row}, 0, tile.queries());
    if (share_.want_q) add_over_keys(tile, ds_, k_, row_, width, dq_ + first_row * row_);
    if (!share_.want_kv) return;
    if (dropping) multiply_weights(tile, f_, p_);
    add_over_queries(tile, p_, dy, row_, width, dv_);
    add_over_queries(tile, ds_, q, row_, width, dk_);
  }

  void clear_weights() const {
    for (int64_t i = 0; i < kBlock * kBlock; ++i) p_[i] = ds_[i] = 0;
  }

  void store_key_gradients(int64_t head, int64_t first, int64_t rows) const {
    store(tensors_.dk, head, first, rows, dk_, A(1), false);
    if (dv_ != dk_) store(tensors_.dv, head, first, rows, dv_, A(1), false);
  }
  void store(const HeadRows<T>& target, int64_t head, int64_t first, int64_t rows, const A* source, A factor, bool add) const {
    unpack(source, row_, rows, problem_.width, static_cast<const A*>(nullptr), factor, target.of_head(problem_, head) + first * target.row,
        target.row, add);
  }

  Problem problem_;
  Share share_;
  Tensors<T> tensors_;
  // A window can be narrower than a cell. In that case, a query can see none of the keys between two keys that adjacent queries see, and
  // its weights for these keys are not computed. The sums over queries include these weights, so they must be 0.
  bool gaps_;
  int64_t row_, transposed_, queries_;  // queries_: rows of q
  Scratch<A> packed_, sums_;
  A *q_, *dy_, *k_, *k_xj_, *v_xj_;             // q and dy: the task's queries; the others: one block of keys
  A *dq_, *delta_, *dk_, *dv_, *p_, *ds_, *f_;  // dq and delta: the task's queries
};

// Returns part n of the range 0 .. all - 1, divided into parts of `size` elements.
Interval part(int64_t n, int64_t size, int64_t all) { return {n * size, min(all, (n + 1) * size)}; }

template <class T> void run_share(const Problem& problem, const Share& share, const Tensors<T>& tensors) {
  const int64_t by_queries = (problem.queries + share.queries - 1) / share.queries, by_keys = (problem.keys + share.keys - 1) / share.keys;
  const int64_t heads = share.heads(problem);
  const int64_t multiplications = 5 * heads * min(share.queries, problem.queries) * min(share.keys, problem.keys) * problem.width;
  const int64_t tasks = by_queries * by_keys;
  parallel_for_with_scratch(
      problem.batches * problem.heads / heads * tasks, tasks_per_chunk(multiplications), [&](int64_t begin, int64_t end) {
        BackwardTask<T> task(problem, share, tensors);
        for (int64_t i = begin; i < end; ++i) {
          const int64_t n = i % tasks;
          task.run(i / tasks, part(n / by_keys, share.queries, problem.queries), part(n % by_keys, share.keys, problem.keys));
        }
      });
}

}  // namespace

void backward_cpu(
    const Problem& problem, const Tensor& dy, const QueryKeyValue& inputs, const Outputs& out, const QueryKeyValue& gradients) {
  const int64_t all_queries = round_up(problem.queries, kBlock), all_keys = round_up(problem.keys, kBlock);
  const int64_t heads = problem.batches * problem.heads / problem.group, threads = thread_count(), rounds = (heads + threads - 1) / threads;
  with_dtype(dy, [&]<class T>(T) {
    const Tensors<T> tensors{head_rows<const T>(inputs.q), head_rows<const T>(inputs.k), head_rows<const T>(inputs.v),
        head_rows<const T>({out.y_bcd}), head_rows<const T>({dy}), out.lse_bnc.data<Accumulator<T>>(), head_rows<T>(gradients.q),
        head_rows<T>(gradients.k), head_rows<T>(gradients.v)};
    // A task with all keys of a head computes five products per block. If the heads are too few for the threads, smaller tasks run in
    // two rounds with a total of seven products per block: first for dk and dv, then for dq.
    if (7 * heads >= 5 * rounds * threads) return run_share(problem, {all_queries, all_keys, true, true}, tensors);
    run_share(problem, {all_queries, kBlock, false, true}, tensors);
    run_share(problem, {kBlock, all_keys, true, false}, tensors);
  });
}

}  // namespace ricci::attention_kernels
