// The bounds of numbers in a model's config, each told as "model.heads: 0, expected 1 or more".
#pragma once
#include <cstdint>

#include "core/error.h"

namespace ricci {

inline constexpr int64_t kLargestSize = INT32_MAX;  // products of two sizes fit into 64 bits

inline void check_size(const char* key, int64_t value, int64_t least = 1, int64_t most = kLargestSize) {
  if (value < least) fail("model.{}: {}, expected {} or more", {key, value, least});
  if (value > most) fail("model.{}: {}, expected {} or less", {key, value, most});
}

inline void check_heads(int64_t heads, int64_t d) {
  check_size("heads", heads);
  if (d % heads != 0) fail("model.heads: {} does not divide d = {}", {heads, d});
}

}  // namespace ricci
