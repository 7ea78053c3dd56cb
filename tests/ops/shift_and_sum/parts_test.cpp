// Sequences that do not fit into the shared memory of a GPU: parts of the levels, classes of positions, tiles with a halo.
#include "ops/shift_and_sum/kernels.h"
#include "tests/ops/shift_and_sum/cases.h"

using namespace ricci;
using namespace ricci::shift_and_sum_kernels;

namespace {

struct Divided {
  ShiftCase of;
  int64_t bytes;
  size_t parts;  // that the backward has
};

// Room for that many rows of the backward, with so many levels, of f64.
int64_t bytes_of(int64_t rows, int levels) { return rows * 8 * numbers_of_row(levels, true); }

}  // namespace

TEST_CASE("shift_and_sum: divided into parts it gives the same values and gradients") {
  on_every_device([](Device device) {
    if (device == Device::cpu) return;
    for (const Divided& divided : {Divided{{1, 37, 1, 4, 6}, bytes_of(40, 6), 1}, {{1, 37, 1, 4, 6}, bytes_of(12, 2), 3},
             {{2, 61, 2, 6, 6}, bytes_of(24, 2), 2}, {{1, 64, 1, 3, 3}, bytes_of(20, 3), 2}, {{1, 100, 1, 9, 7}, bytes_of(50, 6), 2},
             {{1, 29, 1, 4, 9}, bytes_of(8, 1), 3}, {{1, 150, 1, 3, 8}, bytes_of(80, 6), 2}, {{1, 230, 1, 3, 8}, bytes_of(230, 8), 1},
             {{1, 90, 1, 40, 7, 0.4}, bytes_of(33, 4), 2}}) {
      const ShiftCase& of = divided.of;
      CAPTURE(of.c);
      CAPTURE(divided.bytes);
      const Tensor v = of.v(Dtype::f64, device), coef = of.coef(Dtype::f64, device), dy = of.dy(Dtype::f64, device);
      const auto expected = outcome_of(naive_shift_and_sum, of, {to(v, Device::cpu), to(coef, Device::cpu)}, to(dy, Device::cpu));
      set_random_state({3, 7});
      const Problem problem = check("test", v, coef, of.options());
      const Tensor y = like(v), dv = like(v), dcoef = like(coef);
      forward_gpu(problem, plan(problem, false, 8, divided.bytes), v, coef, y);
      const Plan backward = plan(problem, true, 8, divided.bytes);
      CHECK(backward.parts.size() == divided.parts);
      const Tensor partial({gradient_slices_gpu(problem), of.b, of.c, of.heads, problem.used}, Dtype::f64, device);
      backward_gpu(problem, backward, dy, v, coef, dv, partial);
      sum_slices(problem, partial, dcoef);
      CHECK(error_of(y, values_of(expected[0])) < 1e-13);
      CHECK(error_of(dv, values_of(expected[1])) < 1e-13);
      CHECK(error_of(dcoef, values_of(expected[2])) < 1e-13);
    }
  });
}

TEST_CASE("shift_and_sum: plans keep to the memory, and name every level once") {
  for (int64_t positions : {1, 2, 100, 512, 1024, 4096, 100'000, 10'000'000})
    for (int64_t width : {1, 8, 20, 64, 512})
      for (bool backward : {false, true}) {
        int levels = 1;
        while (int64_t{1} << levels < positions) ++levels;
        const int used = positions > 1 ? levels : 0;
        const Problem problem{1, positions, 1, width, levels, used};
        constexpr int64_t kBytes = 227 * 1024;  // that a block of an H100 can have
        const Plan made = plan(problem, backward, 4, kBytes);
        int next = 0;
        for (const Part& part : made.parts) {
          CHECK(part.first == next);
          CHECK(part.bytes <= kBytes);
          next += part.levels;
          for (int64_t m : {int64_t{0}, part.step() - 1}) {
            int64_t covered = 0;
            for (int64_t t = 0; t < part.tiles; ++t) {
              const Tile tile = tile_of(part, static_cast<uint32_t>(m * part.tiles + t), positions, backward);
              if (tile.begin >= tile.end) continue;
              CHECK(tile.begin == covered);
              covered = tile.end;
              CHECK((tile.held_end - tile.held_first) * 4 * numbers_of_row(part.levels, backward) <= part.bytes);
            }
            CHECK(covered == (m < positions ? part.rows_of_class(m, positions) : 0));
          }
        }
        CHECK(next == used);
      }
}
