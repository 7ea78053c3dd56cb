// The bounds of numbers in a model's config.
#pragma once
#include <cstdint>

#include "core/error.h"

namespace ricci {

inline constexpr int64_t kLargestSize = INT32_MAX;  // products of two sizes fit into 64 bits
inline constexpr int64_t kMaxLayers = 100'000;      // each is made before the first number is asked for

inline void check_heads(int64_t heads, int64_t d) {
  if (d % heads != 0) fail("model.heads: {} does not divide d = {}", {heads, d});
}

}  // namespace ricci
