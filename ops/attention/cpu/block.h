// The work on one block of 64 queries by 64 keys on the CPU: the part of it that is visible, and the vectorised steps of the forward and
// backward passes. A block is small, so its matrices stay in the cache. A, the type of sums, is float or double. All matrices are packed as
// elements of type A and stored row by row; `row` is the distance between rows.
#pragma once
#include "core/tensor.h"
#include "ops/attention/kernels.h"

namespace ricci::attention_kernels {

constexpr int64_t kBlock = 64, kColumns = 16;  // columns are computed in groups of 16

HD int64_t round_up(int64_t n, int64_t target) { return (n + target - 1) / target * target; }

// Returns the number of tasks that a thread runs at a time if each task needs this many multiplications. Starting a thread for less than a
// few microseconds of work saves no time.
inline int64_t tasks_per_chunk(int64_t multiplications) { return max<int64_t>(1, (1 << 17) / max<int64_t>(1, multiplications)); }

// The row length of packed matrices. Long rows get an extra cache line: a power of two would map all rows to a few cache sets.
template <class A> int64_t packed_row(int64_t width) {
  const int64_t columns = round_up(width, kColumns);
  return columns > kBlock ? columns + 64 / static_cast<int64_t>(sizeof(A)) : columns;
}

// *target = T(value), in a function: g++ does not vectorise a loop that itself converts to bf16.
template <class T, class A> HD void store(T* target, A value) { *target = T(value); }

struct Interval {
  int64_t begin, end;
};

// The block of 64 queries from t0 on and 64 keys from j0 on, without padding. Row i is query t0 + i, and column j is key j0 + j.
struct Tile {
  Visibility sees;
  int64_t all_queries, all_keys, t0, j0;
  uint8_t first[kBlock], end[kBlock];  // the columns that each row sees (none if end <= first)

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
  // Returns false if no query of the block sees any of its keys.
  static bool visible(const Problem& problem, int64_t keys_of_head, int64_t t0, int64_t j0) {
    const int64_t last_query = min(t0 + kBlock, problem.queries) - 1, end_key = min(j0 + kBlock, keys_of_head);
    return problem.sees.first_key(t0) < end_key && problem.sees.end_key(last_query, keys_of_head) > j0;
  }

  // Returns begin .. end, or 0 .. 0 if this is empty.
  HD static Interval interval(int64_t begin, int64_t end) { return {end > begin ? begin : 0, end > begin ? end : 0}; }
  // Return, within the tile, the keys that the rows i .. i + n - 1 see, and the queries that see the columns j .. j + n - 1.
  HD Interval keys_of(int64_t i, int64_t n) const { return interval(first[i], end[min(i + n, queries()) - 1]); }
  HD Interval queries_of(int64_t j, int64_t n) const {
    const int64_t last = min(j + n, keys()) - 1, begin = max<int64_t>(sees.first_query(j0 + j) - t0, 0);
    return interval(begin, min(sees.end_query(j0 + last, all_queries), t0 + queries()) - t0);
  }
  // Returns the columns of the score matrix that are computed for row i: all that any row of its group of 8 needs.
  HD Interval columns_of(int64_t i) const {
    const Interval keys = keys_of(i / 8 * 8, 8);
    return {keys.begin / kColumns * kColumns, round_up(keys.end, kColumns)};
  }
};

// The columns of one row: computed from begin to end - 1, visible from first to last - 1. They are ints to fit the lanes of a vector.
struct Columns {
  int begin, end, first, last;
  HD Columns(const Tile& tile, int64_t i) {
    const Interval columns = tile.columns_of(i), keys = tile.keys_of(i, 1);
    begin = static_cast<int>(columns.begin);
    end = static_cast<int>(columns.end);
    first = static_cast<int>(keys.begin);
    last = static_cast<int>(keys.end);
  }
  HD bool sees(int j) const { return (j >= first) & (j < last); }
};

// ---- Products. Packed q includes the factor of the scores. s_ij = sum_x a_ix b_xj for visible pairs; other s_ij are arbitrary. b_xj has
// rows of 64 elements.
template <class A> void multiply(const Tile& tile, const A* a, int64_t row, const A* b_xj, int64_t width, A* s_ij);
// c_ix += sum_j w_ij b_jx over the keys that row i sees, and c_jx += sum_i w_ij b_ix over the queries that see key j. w must be zero for
// pairs that are not visible. Columns of c beyond `width`, up to a multiple of 16, are changed as well.
template <class A> void add_over_keys(const Tile& tile, const A* w_ij, const A* b, int64_t row, int64_t width, A* c);
template <class A> void add_over_queries(const Tile& tile, const A* w_ij, const A* b, int64_t row, int64_t width, A* c);

// f_ij = 0 or 1 / (1 - p), the dropout factors of the weights of the tile; and w_ij *= f_ij. In each row, both functions change only the
// columns that columns_of() returns.
template <class A> void weight_factors(const Tile& tile, const Problem& problem, int64_t head, A* f_ij);
template <class A> void multiply_weights(const Tile& tile, const A* f_ij, A* w_ij);

// Copies between tensors (T) and packed matrices (A), and a dot product of rows:
//   pack_rows     target_rx = factor source_rx
//   pack_columns  target_xr = source_rx, with rows of 64
//   unpack        target_rx = factor_r source_rx, or factor source_rx if factor_r is null; with `add` target_rx += instead
//   dot_rows      sum_r = sum_x a_rx b_rx
template <class T, class A>
void pack_rows(const T* source, int64_t source_row, int64_t rows, int64_t width, A factor, A* target, int64_t row);
template <class T, class A> void pack_columns(const T* source, int64_t source_row, int64_t rows, int64_t width, A* target);
template <class T, class A>
void unpack(const A* source, int64_t row, int64_t rows, int64_t width, const A* factor_r, A factor, T* target, int64_t target_row,
    bool add = false);
template <class T, class A> void dot_rows(const T* a, int64_t a_row, const T* b, int64_t b_row, int64_t rows, int64_t width, A* sum_r);

}  // namespace ricci::attention_kernels
