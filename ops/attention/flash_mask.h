// Which weights the flash attention kernels compute and keep: the band of visible keys over whole tiles, the weights that
// dropout keeps, and the order in which thread blocks take their work.
#pragma once
#include "ops/attention/band.h"
#include "ops/attention/flash_tile.h"

namespace ricci::attention_kernels::flash {

constexpr float kLog2E = 1.44269504088896340736f;

// The band in 32 bits, an argument of the kernels: the compiler reads it where it is used and spends no registers.
struct Bounds {
  int back, ahead, queries;
  explicit Bounds(const Problem& problem)
      : back(bounded(problem.band.back)), ahead(bounded(problem.band.ahead)), queries(static_cast<int>(problem.context)) {}
  static int bounded(int64_t n) { return n < 1 << 30 ? static_cast<int>(n) : 1 << 30; }
};

// What is visible in rectangles of queries t0 .. t1 - 1 and keys s0 .. s1 - 1.
struct Visible {
  const Bounds& of;
  int keys;
  __device__ Visible(const Bounds& bounds, const Problem& problem, int head) : of(bounds), keys(static_cast<int>(problem.keys(head))) {}

  __device__ bool all(int t0, int t1, int s0, int s1) const { return t1 - 1 - s0 < of.back && s1 - 1 - t0 < of.ahead && s1 <= keys; }
  __device__ bool none(int t0, int t1, int s0, int s1) const {
    return t0 - (s1 - 1) >= of.back || s0 - (t1 - 1) >= of.ahead || s0 >= keys || t0 >= of.queries;
  }
  // The keys that any of the queries t0 .. t1 - 1 sees lie in first_key .. end_key - 1, and of one query they are all of
  // these; the queries of keys alike.
  __device__ int first_key(int t0) const { return t0 - of.back + 1 > 0 ? t0 - of.back + 1 : 0; }
  __device__ int end_key(int t1) const { return least(least(t1, of.queries) - 1 + of.ahead, keys); }
  __device__ int first_query(int s0) const { return s0 - of.ahead + 1 > 0 ? s0 - of.ahead + 1 : 0; }
  __device__ int end_query(int s0, int s1) const { return s0 < keys ? least(least(s1, keys) - 1 + of.back, of.queries) : 0; }
  __device__ static int least(int a, int b) { return a < b ? a : b; }
};

// Sets a lane's part of row 16 i + 8 half + g to `hidden` in the columns before `first` and from `end` on.
template <int kTiles, int kColumnTiles>
__device__ inline void hide_outside(float (&c)[kTiles][kColumnTiles][4], int i, int half, int first, int end, float hidden) {
  UNROLL(16)
  for (int j = 0; j < kColumnTiles; ++j)
    for (int e = 0; e < 2; ++e)
      if (8 * j + e < first - lane_column() || 8 * j + e >= end - lane_column()) c[i][j][2 * half + e] = hidden;
}

// The same for keys that are not visible: rows are the queries from t0 on, columns the keys from s0 on.
template <int kTiles, int kColumnTiles>
__device__ inline void hide_keys(const Visible& visible, int t0, int s0, float (&c)[kTiles][kColumnTiles][4], float hidden) {
  UNROLL(4)
  for (int i = 0; i < kTiles; ++i)
    for (int half = 0; half < 2; ++half) {
      const int t = t0 + 16 * i + 8 * half + lane_row();
      hide_outside(c, i, half, visible.first_key(t) - s0, visible.end_key(t + 1) - s0, hidden);
    }
}

// Dropout draws four neighbouring keys of a query from one block of random numbers. Of 16 x 8 weights each lane draws four,
// and they trade. Both return in bit e whether the lane's element c[e] stays.
struct Kept {
  Philox random;
  uint32_t dropped_below;
  int64_t head_row, context;
  __device__ Kept(const Problem& problem, int64_t head)
      : random(problem.dropout.random.philox()),
        dropped_below(problem.dropout.dropped_below),
        head_row(problem.dropout.row(head, 0, problem.context)),
        context(problem.context) {}

  // Rows are the queries t .. t + 15, columns the keys s .. s + 7.
  __device__ unsigned of_queries(int t, int s) const {
    const unsigned drawn = four(t + lane() % 16, s + lane() / 16 * 4);
    const int from = lane_row() + lane_column() / 4 * 16, shift = lane_column() % 4;
    const unsigned upper = __shfl_sync(~0u, drawn, from) >> shift & 3, lower = __shfl_sync(~0u, drawn, from + 8) >> shift & 3;
    return upper | lower << 2;
  }
  // Rows are the keys s .. s + 15, columns the queries t .. t + 7.
  __device__ unsigned of_keys(int t, int s) const {
    const unsigned drawn = four(t + lane() % 8, s + lane() / 8 * 4);
    const int from = lane_column() + lane_row() / 4 * 8, bit = lane_row() % 4;
    unsigned kept = 0;
    UNROLL(4)
    for (int e = 0; e < 4; ++e) kept |= (__shfl_sync(~0u, drawn, from + e % 2 + e / 2 * 16) >> bit & 1) << e;
    return kept;
  }

 private:
  // Bit w tells whether the weight of query t and key s + w stays.
  __device__ unsigned four(int t, int s) const {
    const int64_t first = head_row + t * context + s;
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

// Which (batch, head) and which of its `blocks` a thread block takes. Heads go in groups whose keys and values stay in the L2
// cache; within a group the blocks of all heads go from the first or the last, where under a causal mask most work is.
struct Place {
  int head, block;
  __device__ Place(const Problem& problem, int blocks, bool last_first) {
    constexpr int64_t kCached = 16 << 20;
    const int64_t bytes = problem.context * problem.width * 4, fitting = bytes < kCached ? kCached / bytes : 1;
    const int all = static_cast<int>(problem.batches * problem.heads), of_group = fitting < all ? static_cast<int>(fitting) : all;
    const int taken = static_cast<int>(blockIdx.x) / (of_group * blocks), first = taken * of_group;
    const int heads = all - first < of_group ? all - first : of_group, i = static_cast<int>(blockIdx.x) - first * blocks;
    head = first + i % heads;
    block = last_first ? blocks - 1 - i / heads : i / heads;
  }
};

HD int blocks_of(const Problem& problem, int rows) { return static_cast<int>((problem.context + rows - 1) / rows); }

}  // namespace ricci::attention_kernels::flash
