// The parts of a shift-and-sum on a GPU (kernels.h), for sequences that do not fit into shared memory.
#include <algorithm>

#include "ops/shift_and_sum/kernels.h"

namespace ricci::shift_and_sum_kernels {
namespace {

struct Memory {
  bool backward;
  int64_t size, bytes;
  int64_t row(int levels) const { return size * numbers_of_row(levels, backward); }
  int64_t rows(int levels) const { return bytes / row(levels); }
  // True if one part can compute these levels of full classes with this many rows.
  bool fits(int64_t rows_of_class, int levels) const {
    return rows_of_class <= rows(levels) && levels <= kWalkLevels * (backward ? kBackwardWalks : kForwardWalks);
  }
  // A half-warp walks over about 16 rows. It also reads the rows before its stretch, so fewer rows would be slower.
  int warps(int64_t held) const {
    const int64_t most = size == 4 ? kMaxWarps<float> : kMaxWarps<double>;
    int warps = 1;
    while (warps < most && warps * 32 < held) warps *= 2;
    return warps;
  }
  Part whole(int first, int levels, int64_t rows) const {
    return {first, levels, 1, rows, 0, static_cast<int>(rows * row(levels)), warps(rows)};
  }
};

int64_t rows_after(int64_t rows, int levels) { return (rows + (int64_t{1} << levels) - 1) >> levels; }

}  // namespace

Plan plan(const Problem& problem, bool backward, int64_t size, int64_t bytes) {
  const Memory memory{backward, size, bytes};
  Plan plan;
  int first = 0;
  int64_t rows = problem.positions;
  while (!memory.fits(rows, problem.used - first)) {
    // The smallest number of levels that fills its walks and lets one part compute all later levels; else the largest that leaves at least
    // half of a tile for rows that are not halo.
    const int sides = backward ? 2 : 1, left = problem.used - first;
    int levels = 1;
    while (levels < left && levels < kTileLevels && (int64_t{2} << levels) * 2 * sides <= memory.rows(levels + 1) &&
           (levels % kWalkLevels != 0 || !memory.fits(rows_after(rows, levels), left - levels)))
      ++levels;
    const int64_t halo = (int64_t{1} << levels) - 1, fit = memory.rows(levels);
    const int64_t most = fit < rows ? std::max<int64_t>(1, fit - sides * halo) : rows;
    const int64_t tiles = (rows + most - 1) / most, own = (rows + tiles - 1) / tiles, held = std::min(rows, own + sides * halo);
    plan.push_back({first, levels, tiles, own, halo, static_cast<int>(held * memory.row(levels)), memory.warps(held)});
    first += levels;
    rows = rows_after(rows, levels);
    if (first == problem.used) return plan;
  }
  plan.push_back(memory.whole(first, problem.used - first, rows));
  return plan;
}

}  // namespace ricci::shift_and_sum_kernels
