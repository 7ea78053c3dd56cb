// One shift-and-sum as its kernels see it.
#pragma once
#include <cstdint>

#include "core/host_device.h"
#include "core/philox.h"
#include "core/tensor.h"

namespace ricci::shift_and_sum_kernels {

constexpr int kMaxLevels = 30;
constexpr int kWalkLevels = 3, kWalkRows = 1 << kWalkLevels;  // levels in one walk (walk.h); the rows that its last level depends on

// Dropout of levels: level r stays when word r of the random stream is at least 2^32 p. The backward finds the same ones.
struct LevelDropout {
  PhiloxSource random{};
  uint32_t dropped_below = 0;  // 2^32 p; 0: no dropout
  int first = 0;               // the levels before it always stay
  HD bool stays(int level) const {
    return dropped_below == 0 || level < first || random.philox().bits(static_cast<uint64_t>(level)) >= dropped_below;
  }
};

struct Problem {
  int64_t batches, positions, heads, width;  // b, c, heads, columns of a head
  int levels, used;                          // R, and how many of them have a shift below the number of positions
  LevelDropout dropout{};

  HD int64_t d() const { return heads * width; }
  HD int64_t coefficients() const { return heads * levels; }  // at a position
  // Bit r: level r is computed.
  HD uint32_t active() const {
    uint32_t bits = 0;
    for (int r = 0; r < used; ++r) bits |= static_cast<uint32_t>(dropout.stays(r)) << r;
    return bits;
  }
};

// The columns of a head are computed in slices, each by one thread block or by one task of the CPU, which takes a slice in strips of one
// vector. The gradient of the coefficients is a sum over the columns of a head. Each slice has a sum of its own; these are then added
// in order, so that the bits depend neither on threads nor on the order of blocks.
//   partial [slice, b, c, heads, used]
HD int64_t partial_at(const Problem& of, int64_t slice, int64_t b, int64_t position, int64_t head) {
  return (((slice * of.batches + b) * of.positions + position) * of.heads + head) * of.used;
}

}  // namespace ricci::shift_and_sum_kernels
