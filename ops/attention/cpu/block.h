// The work on one block of 64 queries by 64 keys on the CPU: which part of it is visible, and the vectorised steps that the
// forward and the backward are made of. A, the type of sums, is float or double. Matrices are stored row by row; `row` is the distance of
// rows. What is multiplied is packed as numbers of type A, tensors of bf16 too.
#pragma once
#include "core/tensor.h"
#include "ops/attention/problem.h"

namespace ricci::attention_kernels {

constexpr int64_t kBlock = 64, kColumns = 16;  // columns are computed in whole groups of 16

HD int64_t round_up(int64_t n, int64_t target) { return (n + target - 1) / target * target; }

// The number of tasks of that many multiplications that one thread should take at a time: less than some microseconds is not worth it.
inline int64_t tasks_per_chunk(int64_t multiplications) { return max<int64_t>(1, (1 << 17) / max<int64_t>(1, multiplications)); }

// The row length of packed matrices. Long rows get an extra cache line: a power of two would put all rows in few cache sets.
template <class A> int64_t packed_row(int64_t width) {
  const int64_t columns = round_up(width, kColumns);
  return columns > kBlock ? columns + 64 / static_cast<int64_t>(sizeof(A)) : columns;
}

// *to = T(value), in loops over vectors: g++ makes none where a bf16 is made in the loop itself.
template <class T, class A> HD void store(T* target, A value) { *target = T(value); }

struct Interval {
  int64_t begin, end;
};

// The block of 64 queries from t0 on and 64 keys from j0 on, of all queries and of the keys that exist. Rows (i, queries) and
// columns (j, keys) below are counted from there.
struct Tile {
  Visibility sees;
  int64_t all_queries, all_keys, t0, j0;
  uint8_t first[kBlock], end[kBlock];  // the columns that each row sees: none where end is not above first

  Tile(const Problem& problem, int64_t keys_of_head, int64_t query, int64_t key)
      : sees(problem.sees), all_queries(problem.queries), all_keys(keys_of_head), t0(query), j0(key) {
    const auto column = [&](int64_t j) { return static_cast<uint8_t>(max<int64_t>(0, min(j - j0, keys()))); };
    for (int64_t i = 0; i < queries(); ++i) {
      first[i] = column(sees.first_key(t0 + i));
      end[i] = column(sees.end_key(t0 + i, all_keys));
    }
  }
  HD int64_t queries() const { return min(kBlock, all_queries - t0); }
  HD int64_t keys() const { return min(kBlock, all_keys - j0); }
  // True where any of these queries may see any of these keys.
  static bool visible(const Problem& problem, int64_t keys_of_head, int64_t t0, int64_t j0) {
    const int64_t last_query = min(t0 + kBlock, problem.queries) - 1, end_key = min(j0 + kBlock, keys_of_head);
    return problem.sees.first_key(t0) < end_key && problem.sees.end_key(last_query, keys_of_head) > j0;
  }

  // An empty interval becomes 0 .. 0.
  HD static Interval interval(int64_t begin, int64_t end) { return {end > begin ? begin : 0, end > begin ? end : 0}; }
  // Within the tile: the keys that the rows i .. i + n - 1 see, and the queries that see the columns j .. j + n - 1.
  HD Interval keys_of(int64_t i, int64_t n) const { return interval(first[i], end[min(i + n, queries()) - 1]); }
  HD Interval queries_of(int64_t j, int64_t n) const {
    const int64_t last = min(j + n, keys()) - 1, begin = max<int64_t>(sees.first_query(j0 + j) - t0, 0);
    return interval(begin, min(sees.end_query(j0 + last, all_queries), t0 + queries()) - t0);
  }
  // The columns of the score matrix that are computed for row i: all that any row of its group of 8 needs.
  HD Interval columns_of(int64_t i) const {
    const Interval keys = keys_of(i / 8 * 8, 8);
    return {keys.begin / kColumns * kColumns, round_up(keys.end, kColumns)};
  }
};

// ---- Products. Packed q holds the scale of the scores.
// s_ij = sum_x a_ix b_xj where visible (elsewhere s is left or arbitrary); b_xj has rows of 64.
template <class A> void multiply(const Tile& tile, const A* a, int64_t row, const A* b_xj, int64_t width, A* s_ij);
// c_ix += sum_j w_ij b_jx over the keys that row i sees, and c_jx += sum_i w_ij b_ix over the queries that see key j. w must
// be zero where not visible. Columns of c beyond `width`, up to a multiple of 16, are changed too.
template <class A> void add_over_keys(const Tile& tile, const A* w_ij, const A* b, int64_t row, int64_t width, A* c);
template <class A> void add_over_queries(const Tile& tile, const A* w_ij, const A* b, int64_t row, int64_t width, A* c);

// ---- Softmax
// Scores become p_ij = exp(s_ij - m_i) for the new maximum m_i, and 0 where not visible; the sums l_i and the rows of o are
// brought up to date.
template <class A> void forward_softmax(const Tile& tile, A* s_ij, A* m_i, A* l_i, A* o_ix, int64_t row, int64_t width);
// Scores and dp_ij = dy_i . v_j become p_ij = exp(s_ij - lse_i) and p_ij (dp_ij - delta_i), both 0 where not visible.
template <class A> void backward_softmax(const Tile& tile, A* s_ij, A* dp_ij, const A* lse_i, const A* delta_i);

// f_ij = 0 or 1 / (1 - p), what dropout multiplies the weights of the tile by; and w_ij *= f_ij. Both where any weight of the
// row's group of 8 is visible.
template <class A> void weight_factors(const Tile& tile, const Problem& problem, int64_t head, A* f_ij);
template <class A> void multiply_weights(const Tile& tile, const A* f_ij, A* w_ij);

// Between tensors (T) and packed matrices (A):
//   pack_rows     to_rx = factor from_rx
//   pack_columns  to_xr = from_rx, with rows of 64
//   unpack        to_rx = factor_r from_rx, or factor from_rx where factor_r is null; with `add` to_rx += instead
//   dot_rows      sum_r = sum_x a_rx b_rx
template <class T, class A>
void pack_rows(const T* source, int64_t source_row, int64_t rows, int64_t width, A factor, A* target, int64_t row);
template <class T, class A> void pack_columns(const T* source, int64_t source_row, int64_t rows, int64_t width, A* target);
template <class T, class A>
void unpack(const A* source, int64_t row, int64_t rows, int64_t width, const A* factor_r, A factor, T* target, int64_t target_row,
    bool add = false);
template <class T, class A> void dot_rows(const T* a, int64_t a_row, const T* b, int64_t b_row, int64_t rows, int64_t width, A* sum_r);

}  // namespace ricci::attention_kernels
