#include "ops/attention/visibility.h"

#include "core/error.h"

namespace ricci {
namespace {

// The end of a window of tokens; 0 is none.
int64_t end_of(int64_t window) {
  if (window < 0) fail("attention: window is {}, expected 0 (none) or more", {window});
  return window ? window : Visibility::kEndless;
}

}  // namespace

Visibility Visibility::causal(int64_t window) { return {1, 0, end_of(window)}; }

Visibility Visibility::not_causal(int64_t window) { return {1, -kEndless, end_of(window)}; }

Visibility Visibility::cells(int64_t scale, int64_t lo, int64_t hi, CellRule rule) {
  if (scale < 1 || scale > kMaxTokens) fail("attention: cells of {} tokens, expected 1 .. {}", {scale, kMaxTokens});
  if (lo < 0) fail("attention: a window of cells from {}, expected 0 or more tokens back", {lo});
  if (hi <= lo) fail("attention: a window of cells from {} to {}, expected its end after its begin", {lo, hi});
  return {scale, lo + scale - 1, rule == CellRule::inside ? hi : hi + scale - 1};
}

}  // namespace ricci
