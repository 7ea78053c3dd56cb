// One shift-and-sum as its kernels see it, and the names of parts of the work. The drawing is for levels q, q + 1, q + 2 with 2^q = 4 and
// marks the rows of two classes:
//
//   position   0 1 2 3  4 5 6 7  8 9 ...           column  0 ... 31 | 32 ... 63 | ...
//   class 0    *        *        *                         slice 0  | slice 1   |
//   class 1      *        *        *                       a strip is one to four vectors of columns of a slice
//
//   class   the positions that are equal mod 2^q: these levels connect no others. Its positions are rows 0, 1, 2, ...
//   walk    three levels in one pass over the rows of a class (walk.h)
//   tile    some rows of a class, if shared memory cannot hold all; its halo is the rows before it that it depends on
//   part    some levels: one launch on a GPU (kernels.h)
//   slice   some columns: a thread block, or a task of the CPU
//   strip   the columns of a slice that fit into one to four vectors of the CPU
//   stretch some rows of a class: if half-warps share a class, each walks over one (gpu/block_walk.h)
#pragma once
#include <cstdint>

#include "core/dtype.h"
#include "core/philox.h"
#include "core/tensor.h"

namespace ricci::shift_and_sum_kernels {

constexpr int kMaxLevels = 30;
constexpr int kWalkLevels = 3, kWalkRows = 1 << kWalkLevels;  // levels of a walk (walk.h); rows that its last level depends on
HD int walks_of(int levels) { return levels > kWalkLevels ? (levels + kWalkLevels - 1) / kWalkLevels : 1; }

// Dropout of levels: level r stays if word r of the random stream is at least 2^32 p. So the backward pass skips the same levels.
struct LevelDropout {
  PhiloxSource random{};
  uint32_t dropped_below = 0;  // 2^32 p; 0 without dropout
  int first = 0;               // the levels before it always stay
  HD bool stays(int level) const {
    return dropped_below == 0 || level < first || random.philox().bits(static_cast<uint64_t>(level)) >= dropped_below;
  }
};

struct Problem {
  int64_t batches, positions, heads, width;  // b, c, heads, columns of a head
  int levels, used;                          // R, and the number of levels with a shift below the number of positions
  LevelDropout dropout{};

  HD int64_t d() const { return heads * width; }
  HD int64_t coefficients() const { return heads * levels; }  // at a position
  // Bit r is 1 if level r is computed.
  HD uint32_t active() const {
    uint32_t bits = 0;
    for (int r = 0; r < used; ++r) bits |= static_cast<uint32_t>(dropout.stays(r)) << r;
    return bits;
  }
};

// The gradient of a coefficient is a sum over the columns of its head. Each slice of columns has a separate sum, and these are then added
// in order, so the results are bitwise identical for any number of threads and order of blocks.
//   partial [slice, b, c, heads, used]
HD int64_t partial_at(const Problem& problem, int64_t slice, int64_t b, int64_t position, int64_t head) {
  return (((slice * problem.batches + b) * problem.positions + position) * problem.heads + head) * problem.used;
}

}  // namespace ricci::shift_and_sum_kernels
