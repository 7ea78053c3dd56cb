// The rule for the keys that a query sees: causal attention, windows and coarser scales, the same for every implementation of attention.
//
// Queries are tokens t = 0, 1, ... Keys are tokens, or cells of `cell` adjacent tokens. The rule is
//   query t sees key j   if   least <= t - cell j < most
// t - cell j is the number of tokens from the beginning of the cell to t (far). The cell ends near = far - (cell - 1) tokens back. Eight
// tokens and two cells of 4 tokens, causal:
//   query t              0   1   2   3   4   5   6   7
//   key 0: tokens 0-3    .   .   .   x   x   x   x   x     x: seen
//   key 1: tokens 4-7    .   .   .   .   .   .   .   x
// A cell that ends after t contains tokens that the model has to predict, so near >= 0. The first x of key j is at t = 4 j + 3: least = 3.
// The masks of all models:
//   causal                            near >= 0                             least = cell - 1
//   causal with a window              0 <= t - j < window                   least = 0, most = window
//   not causal                                                              least = -kEndless
//   a window lo .. hi of cells        near >= lo, and far < hi  (inside)    least = lo + cell - 1, most = hi
//                                     near >= lo, and near < hi (end)       least = lo + cell - 1, most = hi + cell - 1
// t - cell j grows with t and falls with j. Therefore the keys of a query are an interval, and so are the queries of a key. The ends of
// these intervals never decrease: all keys of the queries t0 .. t1 are between the first key of t0 and the last key of t1. This lets an
// implementation skip blocks. Padding only removes keys at the end.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace ricci {

// A window contains the cells that are completely inside it, or the cells that end inside it.
enum class CellRule : uint8_t { inside, end };

struct Visibility {
  static constexpr int64_t kEndless = int64_t{1} << 60, kMaxTokens = int64_t{1} << 24;  // in a cell
  int64_t cell = 1, least = 0, most = kEndless;

  // Keys are tokens. A window is a number of positions up to the query; 0 means no window. Error: the window is negative.
  static Visibility causal(int64_t window = 0);
  static Visibility not_causal(int64_t window = 0);  // every key, or with a window the keys with t - j < window
  // Keys are cells. A query sees complete cells only, between lo and hi tokens back.
  // Errors: the cell is outside 1 .. kMaxTokens, lo is below 0, hi is not above lo.
  static Visibility cells(int64_t cell, int64_t lo = 0, int64_t hi = kEndless, CellRule rule = CellRule::inside);
  // The rule for queries that start at position `first`: t = 0 is that position. Decoding uses it with the keys of earlier calls.
  Visibility from(int64_t first) const { return {cell, least - first, most - first}; }

  HD bool visible(int64_t t, int64_t j) const { return t - cell * j >= least && t - cell * j < most; }
  // Query t sees the keys first_key .. end_key - 1 of `keys`; the queries first_query .. end_query - 1 of `queries` see key j. The
  // interval is empty if its end is not above its start.
  HD int64_t first_key(int64_t t) const { return max<int64_t>(0, whole_cells(t - most) + 1); }
  HD int64_t end_key(int64_t t, int64_t keys) const { return min(whole_cells(t - least) + 1, keys); }
  HD int64_t first_query(int64_t j) const { return max<int64_t>(0, cell * j + least); }
  HD int64_t end_query(int64_t j, int64_t queries) const { return min(cell * j + most, queries); }

 private:
  // tokens / cell, rounded down, also for negative numbers. Keys that are tokens, the usual case, need no slow division.
  HD int64_t whole_cells(int64_t tokens) const {
    if (cell == 1) return tokens;
    return tokens >= 0 ? tokens / cell : -((cell - 1 - tokens) / cell);
  }
};

}  // namespace ricci
