// For the flash attention kernels: the visible weights of each tile (most tiles are fully visible or fully hidden), the weights that
// dropout keeps, and the work order of thread blocks.
#pragma once
#include "ops/attention/flash/tile.h"
#include "ops/attention/kernels.h"

namespace ricci::attention_kernels::flash {

constexpr float kLog2E = 1.44269504088896340736f;

// The visibility and the extents in 32 bits. As kernel arguments, they are read from constant memory and need no registers.
struct Bounds {
  int cell, least, most, queries, keys;
  explicit Bounds(const Problem& problem)
      : cell(static_cast<int>(problem.sees.cell)),
        least(bounded(problem.sees.least)),
        most(bounded(problem.sees.most)),
        queries(static_cast<int>(problem.queries)),
        keys(static_cast<int>(problem.keys)) {}
};

// The keys that the queries of a head see (visibility.h), for rectangles of the queries t0 .. t1 - 1 and the keys j0 .. j1 - 1.
struct Visible {
  const Bounds& bounds;
  int keys;  // number of keys without padding
  __device__ Visible(const Bounds& bounds, const Problem& problem, int head)
      : bounds(bounds), keys(static_cast<int>(problem.keys_of(head))) {}

  // The distance t - cell j is smallest in the corner (t0, j1 - 1) and largest in the corner (t1 - 1, j0). The formulas use the width j1 -
  // j0: it is known at compile time, so both corners need only one product.
  __device__ bool all(int t0, int t1, int j0, int j1) const {
    return max_distance(t1, j0) < bounds.most && min_distance(t0, j0, j1) >= bounds.least && j1 <= keys;
  }
  __device__ bool none(int t0, int t1, int j0, int j1) const {
    return min_distance(t0, j0, j1) >= bounds.most || max_distance(t1, j0) < bounds.least || j0 >= keys || t0 >= bounds.queries;
  }
  // All keys that the queries t0 .. t1 - 1 see are in first_key .. end_key - 1; all queries that see the keys j0 .. j1 - 1 are in
  // first_query .. end_query - 1. For a single query or key, these intervals are exact.
  __device__ int first_key(int t0) const { return max(0, whole_cells(t0 - bounds.most) + 1); }
  __device__ int end_key(int t1) const { return min(whole_cells(min(t1, bounds.queries) - 1 - bounds.least) + 1, keys); }
  __device__ int first_query(int j0) const { return max(0, bounds.cell * j0 + bounds.least); }
  __device__ int end_query(int j0, int j1) const {
    return j0 < keys ? min(bounds.cell * (min(j1, keys) - 1) + bounds.most, bounds.queries) : 0;
  }

 private:
  __device__ int max_distance(int t1, int j0) const { return t1 - 1 - bounds.cell * j0; }
  __device__ int min_distance(int t0, int j0, int j1) const { return t0 - bounds.cell * j0 - bounds.cell * (j1 - 1 - j0); }
  __device__ int whole_cells(int tokens) const {  // tokens / cell, rounded down
    if (bounds.cell == 1) return tokens;
    return tokens >= 0 ? tokens / bounds.cell : -((bounds.cell - 1 - tokens) / bounds.cell);
  }
};

// Sets a lane's part of row 16 i + 8 half + g to `hidden` in the columns x with step x < first or step x >= end.
template <int kTiles, int kColumnTiles>
__device__ inline void hide_outside(float (&c)[kTiles][kColumnTiles][4], int i, int half, int step, int first, int end, float hidden) {
  first -= step * lane_column();
  end -= step * lane_column();
  UNROLL(16)
  for (int x = 0; x < kColumnTiles; ++x)
    for (int e = 0; e < 2; ++e)
      if (step * (8 * x + e) < first || step * (8 * x + e) >= end) c[i][x][2 * half + e] = hidden;
}

// Sets pairs that are not visible to `hidden`: rows are the queries from t0 on, columns the keys from j0 on. Key j is visible to query t if
// t - most < cell j <= t - least, so no division is needed.
template <int kTiles, int kColumnTiles>
__device__ inline void hide_keys(const Visible& visible, int t0, int j0, float (&c)[kTiles][kColumnTiles][4], float hidden) {
  const Bounds& bounds = visible.bounds;
  UNROLL(4)
  for (int i = 0; i < kTiles; ++i)
    for (int half = 0; half < 2; ++half) {
      const int t = t0 + 16 * i + 8 * half + lane_row(), end = min(t - bounds.least + 1, bounds.cell * visible.keys);
      hide_outside(c, i, half, bounds.cell, t - bounds.most + 1 - bounds.cell * j0, end - bounds.cell * j0, hidden);
    }
}

// The weights that dropout keeps. One block of the random generator contains the numbers of four adjacent keys of a query. Each lane
// samples four of 16 x 8 weights, and the lanes exchange the results. Bit e of a result is 1 if element c[e] of the lane stays.
struct Kept {
  Philox random;
  uint32_t dropped_below;
  int64_t first_weight, keys;
  __device__ Kept(const Problem& problem, int64_t head)
      : random(problem.dropout.random.philox()),
        dropped_below(problem.dropout.dropped_below),
        first_weight(problem.weight(head, 0)),
        keys(problem.keys) {}

  // Rows are the queries t .. t + 15, columns the keys j .. j + 7.
  __device__ unsigned of_queries(int t, int j) const {
    const unsigned drawn = four(t + lane() % 16, j + lane() / 16 * 4);
    const int from = lane_row() + lane_column() / 4 * 16, shift = lane_column() % 4;
    const unsigned upper = __shfl_sync(~0u, drawn, from) >> shift & 3, lower = __shfl_sync(~0u, drawn, from + 8) >> shift & 3;
    return upper | lower << 2;
  }
  // Rows are the keys j .. j + 15, columns the queries t .. t + 7.
  __device__ unsigned of_keys(int t, int j) const {
    const unsigned drawn = four(t + lane() % 8, j + lane() / 8 * 4);
    const int from = lane_column() + lane_row() / 4 * 8, bit = lane_row() % 4;
    unsigned kept = 0;
    UNROLL(4)
    for (int e = 0; e < 4; ++e) kept |= (__shfl_sync(~0u, drawn, from + e % 2 + e / 2 * 16) >> bit & 1) << e;
    return kept;
  }

 private:
  // Bit w is 1 if the weight of query t and key j + w stays.
  __device__ unsigned four(int t, int j) const {
    const int64_t first = first_weight + t * keys + j;
    const int begin = static_cast<int>(first % 4);
    unsigned kept = of_block(first / 4);
    if (begin) kept |= of_block(first / 4 + 1) << 4;
    return kept >> begin;
  }
  __device__ unsigned of_block(int64_t block) const {
    const auto [v] = random.block(static_cast<uint64_t>(block));
    const auto stays = [this](uint32_t bits) { return bits >= dropped_below ? 1u : 0u; };
    return stays(v[0]) | stays(v[1]) << 1 | stays(v[2]) << 2 | stays(v[3]) << 3;
  }
};

// The head and the block of rows (one of `blocks`) that a thread block works on. `read` is the number of positions on the other side (keys
// or queries) that a block loops over, with two rows of bf16 each. Heads are processed in groups, and the keys and values of a group fit
// into L2. In a group, the blocks of all heads alternate, starting with the first or the last block: under a causal mask, the last blocks
// of queries and the first blocks of keys have the most work.
struct Place {
  int head, block;
  __device__ Place(const Problem& problem, int64_t read, int blocks, bool last_first) {
    constexpr int64_t kCached = 16 << 20;
    const int64_t bytes = read * problem.width * 4, fitting = bytes < kCached ? kCached / bytes : 1;
    const int all = static_cast<int>(problem.batches * problem.heads), of_group = fitting < all ? static_cast<int>(fitting) : all;
    const int taken = static_cast<int>(blockIdx.x) / (of_group * blocks), first = taken * of_group;
    const int heads = all - first < of_group ? all - first : of_group, i = static_cast<int>(blockIdx.x) - first * blocks;
    head = first + i % heads;
    block = last_first ? blocks - 1 - i / heads : i / heads;
  }
};

template <int kRows> HD int blocks_of(int64_t positions) { return static_cast<int>((positions + kRows - 1) / kRows); }

// The start of the head that a query head uses, in chunks of 16 bytes, and the address of its row t. A kernel keeps the index of the chunk:
// an int needs half the registers of a pointer. flash_fits ensures that the index fits into an int.
constexpr int kChunk = 8;  // elements
template <class T> __device__ inline int chunk_of(const HeadRows<T>& rows, const Problem& problem, int head) {
  const int heads = static_cast<int>(problem.heads), n = head % heads, shared = rows.group == 1 ? n : n / static_cast<int>(rows.group);
  return static_cast<int>((head / heads * rows.sequence + shared * static_cast<int>(problem.width)) / kChunk);
}
template <class T> __device__ inline T* row_of(const HeadRows<T>& rows, int chunk, int t) {
  return rows.data + int64_t{chunk + t * (static_cast<int>(rows.row) / kChunk)} * kChunk;
}

// Starts to load kRows rows of a head from row t on; rows from `end` on become zeros.
template <int kRows, int kThreads, int kWidth>
__device__ inline void begin_rows(const Tile<kWidth>& tile, const HeadRows<const bf16>& rows, int chunk, int t, int end) {
  begin_load<kRows, kThreads>(tile, row_of(rows, chunk, t), static_cast<int>(rows.row), end - t);
}

}  // namespace ricci::attention_kernels::flash
