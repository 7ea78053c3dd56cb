// A GPU computes a shift-and-sum in parts. A thread block holds 32 columns of some positions in shared memory. Where the
// positions of a sequence do not all fit, the levels are divided: those from `first` on connect only positions whose distance is
// a multiple of step = 2^first. Such a class of positions, rows 0, 1, 2, ..., is 2^first times shorter than the sequence, and within it
// the levels are shifts by 1, 2, 4, ... rows. A class that is still too long is cut into tiles of rows. What a tile's rows depend
// on is at most halo = 2^levels - 1 rows away; a tile holds these rows too and computes them again.
#pragma once
#include <vector>

#include "ops/shift_and_sum/problem.h"

namespace ricci::shift_and_sum_kernels {

constexpr int kColumns = 32;          // per slice
constexpr int kLanes = kColumns / 2;  // in a half-warp: each has two columns
constexpr int kForwardWalks = 4;      // at most, of a forward kernel
constexpr int kBackwardWalks = 3;     // at most, of a backward kernel
constexpr int kTileLevels = 6;        // at most, of a part with tiles
// Per block: the backward takes 128 registers per thread, or 256.
template <class A> inline constexpr int kMaxWarps = sizeof(A) == 4 ? 16 : 8;

struct Part {
  int first, levels;  // first .. first + levels - 1
  int64_t tiles;      // in the longest class
  int64_t rows;       // in a tile, without the halo
  int64_t halo;
  int bytes;  // shared memory
  int warps;  // in a thread block, a power of two

  HD int64_t step() const { return int64_t{1} << first; }
  HD int64_t rows_of_class(int64_t m, int64_t positions) const { return (positions - m + step() - 1) >> first; }
};

// A thread block has in shared memory rows held_first .. held_end - 1 of the class of position m. It stores the results of the rows
// `begin` to `end` - 1. Nothing is to be done where begin is not below end.
struct Tile {
  int64_t m, held_first, held_end, begin, end;
};
HD Tile tile_of(const Part& part, uint32_t number, int64_t positions, bool halo_after) {
  const uint32_t tiles = static_cast<uint32_t>(part.tiles), m = number / tiles, tile = number % tiles;
  const int64_t rows = m < positions ? part.rows_of_class(m, positions) : 0, begin = tile * part.rows;
  const int64_t end = begin + part.rows < rows ? begin + part.rows : rows;
  const int64_t before = begin > part.halo ? begin - part.halo : 0, after = halo_after ? part.halo : 0;
  return {m, before, end + after < rows ? end + after : rows, begin, end};
}

using Plan = std::vector<Part>;

HD int walks_of(int levels) { return levels > kWalkLevels ? (levels + kWalkLevels - 1) / kWalkLevels : 1; }

// The numbers of shared memory for a row that is held. The forward needs its values; the backward the gradient too, and the
// values before every walk but the first. Both need the coefficients.
HD int buffers_of(int levels, bool backward) {
  const int of_backward = walks_of(levels) > 2 ? walks_of(levels) : 2;
  return backward ? of_backward : 1;
}
HD int numbers_of_row(int levels, bool backward) { return kColumns * buffers_of(levels, backward) + kWalkLevels * walks_of(levels); }

// `bytes` of shared memory for a block, numbers of `size` bytes.
Plan plan(const Problem& problem, bool backward, int64_t size, int64_t bytes);

}  // namespace ricci::shift_and_sum_kernels
