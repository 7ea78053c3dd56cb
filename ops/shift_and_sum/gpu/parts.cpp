#include "ops/shift_and_sum/gpu/parts.h"

#include <algorithm>

namespace ricci::shift_and_sum_kernels {
namespace {

struct Memory {
  bool backward;
  int64_t size, bytes;
  int64_t row(int columns, int levels) const { return columns * size * buffers_of(levels, backward); }
  int64_t rows(int columns, int levels) const { return bytes / row(columns, levels); }
};

// All levels of whole classes at once.
Part whole(int first, int levels, int64_t rows, int64_t row_bytes) {
  return {first, levels, 1, rows, 0, static_cast<int>(rows * row_bytes)};
}

}  // namespace

Plan plan(const Problem& problem, bool backward, int64_t size, int64_t bytes) {
  const Memory memory{backward, size, bytes};
  int widest = 4;
  while (widest < 32 && widest < problem.width) widest *= 2;
  for (int columns = widest; columns >= std::min(widest, 8); columns /= 2)
    if (problem.positions <= memory.rows(columns, problem.used))
      return {columns, {whole(0, problem.used, problem.positions, memory.row(columns, problem.used))}};

  Plan plan{widest, {}};
  int first = 0;
  for (int64_t rows = problem.positions; rows > memory.rows(widest, problem.used - first);) {
    // As many levels as leave at least half of a tile to its own rows.
    const int sides = backward ? 2 : 1;
    int levels = 1;
    while (levels < problem.used - first && (int64_t{2} << levels) * 2 * sides <= memory.rows(widest, levels + 1)) ++levels;
    const int64_t halo = (int64_t{1} << levels) - 1, held = std::min(rows, memory.rows(widest, levels));
    const int64_t own = std::max<int64_t>(1, held - sides * halo);
    plan.parts.push_back({first, levels, (rows + own - 1) / own, own, halo, static_cast<int>(held * memory.row(widest, levels))});
    first += levels;
    rows = (rows + (int64_t{1} << levels) - 1) >> levels;
    if (first == problem.used) return plan;
  }
  const int64_t rows = (problem.positions + (int64_t{1} << first) - 1) >> first;
  plan.parts.push_back(whole(first, problem.used - first, rows, memory.row(widest, problem.used - first)));
  return plan;
}

}  // namespace ricci::shift_and_sum_kernels
