// The keys that a query sees: one rule, which every implementation of attention asks.
//
// Queries are tokens t = 0, 1, ...; keys are cells of `scale` tokens each: key j covers the tokens scale j .. scale (j + 1) - 1.
// With scale 1 keys are tokens. The rule is
//   query t sees key j   iff   least <= t - scale j < most
// t - scale j is the distance from the query back to the first token of the cell (far); the distance to its last token is near = far -
// (scale - 1). Every mask of the models is of this form:
//   causal                            near >= 0                             least = scale - 1
//   causal with a window              0 <= t - j < window                   least = 0, most = window
//   not causal                                                              least = -kEndless
//   a window lo .. hi of cells        near >= lo, and far < hi  (inside)    least = lo + scale - 1, most = hi
//                                     near >= lo, and near < hi (end)       least = lo + scale - 1, most = hi + scale - 1
// t - scale j grows with t and falls with j. Therefore the keys of a query are an interval, so are the queries of a key, and
// both ends of these intervals never go back as t, or j, goes on: all that the queries t0 .. t1 see is between the first key
// of t0 and the last key of t1. Padding only takes keys away from the end.
#pragma once
#include <cstdint>

#include "core/host_device.h"

namespace ricci {

// A window holds the cells that are inside it as a whole, or the cells whose end is.
enum class CellRule : uint8_t { inside, end };

struct Visibility {
  static constexpr int64_t kEndless = int64_t{1} << 60, kMaxTokens = int64_t{1} << 24;  // in a cell
  int64_t scale = 1, least = 0, most = kEndless;

  // Keys are tokens. A window is a number of positions back, the query's own included; 0 is no window. Error: a negative window.
  static Visibility causal(int64_t window = 0);
  static Visibility not_causal(int64_t window = 0);  // every key; with a window those with t - j < window
  // Keys are cells of `scale` tokens. A query sees complete cells only, between lo and hi tokens back.
  // Errors: a scale outside 1 .. kMaxTokens, lo below 0, hi not above lo.
  static Visibility cells(int64_t scale, int64_t lo = 0, int64_t hi = kEndless, CellRule rule = CellRule::inside);
  // The same for queries whose first, t = 0, is at position `first`: new tokens against keys of earlier ones.
  Visibility from(int64_t first) const { return {scale, least - first, most - first}; }

  HD bool visible(int64_t t, int64_t j) const { return t - scale * j >= least && t - scale * j < most; }
  // Query t sees the keys first_key .. end_key - 1 of `keys`, and key j is seen by the queries first_query .. end_query - 1 of
  // `queries`. Where the end is not above the first it is none.
  HD int64_t first_key(int64_t t) const { return max<int64_t>(0, whole_cells(t - most) + 1); }
  HD int64_t end_key(int64_t t, int64_t keys) const { return min(whole_cells(t - least) + 1, keys); }
  HD int64_t first_query(int64_t j) const { return max<int64_t>(0, scale * j + least); }
  HD int64_t end_query(int64_t j, int64_t queries) const { return min(scale * j + most, queries); }

 private:
  // tokens / scale, rounded down, of negative numbers too. Most keys are tokens, and a division takes long.
  HD int64_t whole_cells(int64_t tokens) const {
    if (scale == 1) return tokens;
    return tokens >= 0 ? tokens / scale : -((scale - 1 - tokens) / scale);
  }
};

}  // namespace ricci
