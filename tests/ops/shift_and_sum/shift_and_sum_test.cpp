// The shift-and-sum against its definition; its dropout of levels; decoding; sequences that do not fit into the shared memory of a GPU.
#include "ops/shapes/shape_ops.h"
#include "ops/shift_and_sum/kernels.h"
#include "tests/ops/shift_and_sum/cases.h"

using namespace ricci;
using namespace ricci::shift_and_sum_kernels;

namespace {

const std::vector<ShiftCase> kCases = {{1, 1, 1, 1, 1}, {1, 2, 1, 1, 1}, {2, 3, 1, 5, 2}, {1, 5, 3, 1, 3}, {2, 6, 2, 4, 3}, {2, 7, 1, 3, 3},
    {1, 8, 2, 8, 3}, {1, 13, 2, 5, 4}, {2, 16, 1, 17, 4}, {1, 17, 1, 33, 5}, {1, 19, 4, 7, 5}, {1, 33, 2, 16, 6}, {1, 7, 1, 4, 2},
    {1, 5, 2, 3, 6}, {1, 129, 1, 36, 8}, {1, 70, 3, 12, 7}, {1, 64, 1, 33, 6}, {2, 90, 1, 34, 7}, {1, 263, 1, 36, 9}, {1, 512, 1, 5, 9}};

// V^R[i] = sum over j of V^0[j] times one coefficient for every binary digit of i - j, from the highest to the lowest, at the current
// position of the walk from i back to j.
double weight(const Values& coef, const ShiftCase& of, int64_t b, int64_t head, int64_t i, int64_t j) {
  double product = 1;
  int64_t at = i;
  for (int64_t r = 62; r >= 0; --r) {
    if (!((i - j) >> r & 1)) continue;
    if (r >= of.levels) return 0;
    product *= coef[static_cast<size_t>(((b * of.c + at) * of.heads + head) * of.levels + r)];
    at -= int64_t{1} << r;
  }
  return product;
}

// The errors of the values, dv and dcoef of `f` at the given precision, relative to the definition in f64.
std::vector<double> errors(ShiftAndSum f, const ShiftCase& of, Device device, Dtype dtype, uint64_t stream = 7) {
  const Tensor v = of.v(dtype, device), coef = of.coef(dtype, device), dy = of.dy(dtype, device);
  const auto expected = outcome_of(naive_shift_and_sum, of, {exactly(v), exactly(coef)}, exactly(dy), stream);
  const auto got = outcome_of(f, of, {v, coef}, dy, stream);
  std::vector<double> all;
  for (size_t i = 0; i < got.size(); ++i) all.push_back(error_of(got[i], values_of(expected[i])));
  return all;
}

// The number of times that each level was skipped in `calls` calls: only level r carries the first value to position 2^r.
std::vector<int> skipped(const ShiftCase& of, int calls) {
  Values v(static_cast<size_t>(of.c * of.d()));
  v[0] = 1;
  const Tensor first = tensor_of(v, {1, of.c, of.d()}, Dtype::f32, Device::cpu), ones({1, of.c, of.heads * of.levels});
  fill(ones, 1);
  std::vector<int> counts(static_cast<size_t>(of.levels));
  set_random_state({11, 0});
  for (int call = 0; call < calls; ++call) {
    const Tensor y = shift_and_sum(first, ones, of.options());
    for (int64_t r = 0; r < of.levels; ++r) counts[static_cast<size_t>(r)] += item(y, (int64_t{1} << r) * of.d()) == 0;
  }
  return counts;
}

// Positions first .. first + count of a tensor [b c x].
Tensor positions(const Tensor& t, int64_t first, int64_t count) { return slice(t, 1, first, count).detached(); }

struct Divided {
  ShiftCase of;
  int64_t bytes;
  size_t parts;  // for the backward
};

// The bytes of this number of rows and levels of the backward, in f64.
int64_t bytes_of(int64_t rows, int levels) { return rows * 8 * numbers_of_row(levels, true); }

}  // namespace

TEST_CASE("shift_and_sum: a value travels along the binary digits of the distance") {
  for (const ShiftCase& of : kCases) {
    const Tensor v = of.v(Dtype::f64, Device::cpu), coef = of.coef(Dtype::f64, Device::cpu);
    const Values from = values_of(v), c = values_of(coef);
    Values expected(from.size());
    for (int64_t b = 0; b < of.b; ++b)
      for (int64_t i = 0; i < of.c; ++i)
        for (int64_t x = 0; x < of.d(); ++x)
          for (int64_t j = 0; j <= i; ++j)
            expected[static_cast<size_t>((b * of.c + i) * of.d() + x)] +=
                weight(c, of, b, x / of.width, i, j) * from[static_cast<size_t>((b * of.c + j) * of.d() + x)];
    CHECK(error_of(shift_and_sum(v, coef, of.options()), expected) < 1e-14);
    CHECK(error_of(naive_shift_and_sum(v, coef, of.options()), expected) < 1e-14);
  }
}

TEST_CASE("shift_and_sum: values and gradients are those of the definition, on every device and in every dtype") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (const ShiftCase& of : kCases) {
      INFO("c ", of.c, ", width ", of.width);
      const auto ours = errors(shift_and_sum, of, device, dtype), plain = errors(naive_shift_and_sum, of, Device::cpu, dtype);
      for (size_t i = 0; i < ours.size(); ++i) CHECK(ours[i] <= 2 * plain[i] + 8 * sum_unit(dtype) * static_cast<double>(of.width));
    }
  });
}

TEST_CASE("shift_and_sum: the backward keeps only the values and the coefficients") {
  const ShiftCase of{2, 19, 2, 8, 5};
  Tape tape;
  const Tensor v = tape.watch(of.v(Dtype::f32, Device::cpu)), coef = tape.watch(of.coef(Dtype::f32, Device::cpu));
  shift_and_sum(v, coef, of.options());
  CHECK(kept_bytes(tape) == v.bytes() + coef.bytes());
}

TEST_CASE("shift_and_sum: the bits do not depend on the number of threads") {
  const ShiftCase of{1, 300, 1, 100, 9};
  const std::vector<Tensor> inputs{of.v(Dtype::f32, Device::cpu), of.coef(Dtype::f32, Device::cpu)};
  check_threads([&] { return outcome_of(shift_and_sum, of, inputs, of.dy(Dtype::f32, Device::cpu)); });
}

TEST_CASE("shift_and_sum: what is not finite stays on the paths that it takes") {
  on_every_device([](Device device) {
    const ShiftCase of{1, 13, 1, 4, 4};
    Values v = values_of(of.v(Dtype::f64, Device::cpu));
    v[5 * 4] = NAN;  // position 5, column 0
    const Values y = values_of(shift_and_sum(tensor_of(v, {1, 13, 4}, Dtype::f64, device), of.coef(Dtype::f64, device), of.options()));
    for (int64_t i = 0; i < 13; ++i)
      for (int64_t x = 0; x < 4; ++x) CHECK(std::isnan(y[static_cast<size_t>(i * 4 + x)]) == (i >= 5 && x == 0));
  });
}

TEST_CASE("shift_and_sum: with dropout values and gradients are those of the definition with the same levels left out") {
  on_every_device([](Device device) {
    for (const ShiftCase& of : {ShiftCase{2, 13, 2, 5, 4, 0.5}, ShiftCase{1, 40, 1, 20, 6, 0.7}, ShiftCase{1, 33, 1, 3, 6, 0.3, false}})
      for (uint64_t stream = 0; stream < 4; ++stream)
        for (double error : errors(shift_and_sum, of, device, Dtype::f64, stream)) CHECK(error < 1e-13);
  });
}

TEST_CASE("shift_and_sum: dropout skips each level as often as it says, level 0 only where it may") {
  for (bool drops_level_0 : {true, false}) {
    const auto counts = skipped({1, 33, 1, 1, 6, 0.25, drops_level_0}, 2000);
    for (size_t r = 0; r < counts.size(); ++r)
      CHECK(std::abs(counts[r] - (r > 0 || drops_level_0 ? 500 : 0)) <= (r > 0 || drops_level_0 ? 80 : 0));
  }
}

TEST_CASE("shift_and_sum: one draw is for the whole batch and all heads, and a call without dropout draws nothing") {
  const ShiftCase of{3, 5, 2, 1, 3, 0.5};
  Values v(30);
  for (size_t b = 0; b < 3; ++b) v[b * 10] = v[b * 10 + 1] = 1;
  const Tensor first = tensor_of(v, {3, 5, 2}, Dtype::f32, Device::cpu), ones({3, 5, 6});
  fill(ones, 1);
  set_random_state({2, 0});
  for (int call = 0; call < 20; ++call) {
    const Values y = values_of(shift_and_sum(first, ones, of.options()));
    for (size_t i = 0; i < 5; ++i)
      for (size_t b = 0; b < 3; ++b)
        for (size_t x = 0; x < 2; ++x) CHECK(y[b * 10 + i * 2 + x] == y[i * 2]);
  }
  CHECK(random_state().next_stream == 20);
  shift_and_sum(first, ones, {.heads = 2});
  CHECK(random_state().next_stream == 20);
}

TEST_CASE("shift_and_sum_cached: positions read in any portions give the same as at once") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (const ShiftCase& of :
        {ShiftCase{2, 13, 2, 5, 4}, ShiftCase{1, 20, 1, 3, 2}, ShiftCase{1, 9, 1, 130, 5}, ShiftCase{1, 4, 1, 3, 6}}) {
      const Tensor v = of.v(dtype, device), coef = of.coef(dtype, device), full = shift_and_sum(v, coef, of.options());
      for (int64_t portion : {1, 3, 7, 100}) {
        const int levels = of.c == 4 ? 2 : static_cast<int>(of.levels);  // no position of 4 reaches a later level, so shorter rings suffice
        Tensor rings = zeros({of.b, (int64_t{1} << levels) - 1, of.d()}, dtype, device);
        for (int64_t past = 0; past < of.c; past += portion) {
          const int64_t count = std::min(portion, of.c - past);
          const Tensor y = shift_and_sum_cached(positions(v, past, count), positions(coef, past, count), rings, past, of.options());
          CHECK(error_of(y, values_of(positions(full, past, count))) <= 16 * unit(dtype));
        }
      }
    }
  });
}

TEST_CASE("shift_and_sum: divided into parts it gives the same values and gradients") {
  on_gpus([](Device device) {
    for (const Divided& divided : {Divided{{1, 37, 1, 4, 6}, bytes_of(40, 6), 1}, {{1, 37, 1, 4, 6}, bytes_of(12, 2), 3},
             {{2, 61, 2, 6, 6}, bytes_of(24, 2), 2}, {{1, 64, 1, 3, 3}, bytes_of(20, 3), 2}, {{1, 100, 1, 9, 7}, bytes_of(50, 6), 2},
             {{1, 29, 1, 4, 9}, bytes_of(8, 1), 3}, {{1, 150, 1, 3, 8}, bytes_of(80, 6), 2}, {{1, 230, 1, 3, 8}, bytes_of(230, 8), 1},
             {{1, 90, 1, 40, 7, 0.4}, bytes_of(33, 4), 2}}) {
      const ShiftCase& of = divided.of;
      INFO("c ", of.c, ", bytes ", divided.bytes);
      const Tensor v = of.v(Dtype::f64, device), coef = of.coef(Dtype::f64, device), dy = of.dy(Dtype::f64, device);
      const auto expected = outcome_of(naive_shift_and_sum, of, {exactly(v), exactly(coef)}, exactly(dy));
      set_random_state({3, 7});
      const Problem problem = check("test", v, coef, of.options());
      const Tensor y = like(v), dv = like(v), dcoef = like(coef);
      forward_gpu(problem, plan(problem, false, 8, divided.bytes), v, coef, y);
      const Plan backward = plan(problem, true, 8, divided.bytes);
      CHECK(backward.size() == divided.parts);
      const Tensor partial({gradient_slices_gpu(problem), of.b, of.c, of.heads, problem.used}, Dtype::f64, device);
      backward_gpu(problem, backward, dy, v, coef, dv, partial);
      sum_slices(problem, partial, dcoef);
      for (size_t i = 0; i < 3; ++i) CHECK(error_of(std::array{y, dv, dcoef}[i], values_of(expected[i])) < 1e-13);
    }
  });
}

TEST_CASE("shift_and_sum: plans fit the memory and name every level once, and the tiles of a class cover it") {
  constexpr int64_t kBytes = 227 * 1024;  // shared memory of a thread block on an H100
  for (int64_t positions : {1, 2, 100, 512, 1024, 4096, 100'000, 10'000'000})
    for (int64_t width : {1, 8, 20, 64, 512})
      for (bool backward : {false, true}) {
        int levels = 1, next = 0;
        while (int64_t{1} << levels < positions) ++levels;
        const int used = positions > 1 ? levels : 0;
        for (const Part& part : plan({1, positions, 1, width, levels, used}, backward, 4, kBytes)) {
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

TEST_CASE("shift_and_sum: messages") {
  const auto said = [](Shape v, Shape coef, ShiftAndSumOptions options) {
    return message_of([&] { shift_and_sum(Tensor(v), Tensor(coef), options); });
  };
  CHECK(said({2, 3, 4}, {2, 5, 2}, {}) == "shift_and_sum: index c is 3 in v_bcd[2 3 4] but 5 in coef_bcx[2 5 2]");
  CHECK(said({2, 3, 5}, {2, 3, 4}, {.heads = 2}) == "shift_and_sum: v has 5 columns, expected a multiple of the 2 heads");
  CHECK(said({2, 3, 4}, {2, 3, 5}, {.heads = 2}) == "shift_and_sum: a position has 5 coefficients, expected a multiple of the 2 heads");
  CHECK(said({2, 3, 4}, {2, 3, 31}, {}) == "shift_and_sum: the number of levels is 31, expected 1 .. 30");
  CHECK(said({2, 3, 4}, {2, 3, 0}, {}) == "shift_and_sum: the number of levels is 0, expected 1 .. 30");
  CHECK(said({2, 3, 4}, {2, 3, 2}, {.heads = 0}) == "shift_and_sum: heads is 0, expected at least 1");
  CHECK(said({2, 3, 4}, {2, 3, 2}, {.dropout = -0.1}) == "shift_and_sum: dropout is -0.1, expected 0 or more and less than 1");
  CHECK(said({2, 3, 4}, {2, 3, 2}, {.dropout = 1}) == "shift_and_sum: dropout is 1, expected 0 or more and less than 1");
}

TEST_CASE("shift_and_sum_cached: messages") {
  const auto said = [](Shape v, Shape rings, int64_t past, ShiftAndSumOptions options = {}, int64_t levels = 3) {
    return message_of([&] {
      Tensor memory(rings);
      shift_and_sum_cached(Tensor(v), Tensor({v[0], v[1], levels}), memory, past, options);
    });
  };
  CHECK(said({2, 1, 4}, {2, 0, 4}, 0, {}, 0) == "shift_and_sum_cached: the number of levels is 0, expected 1 .. 30");
  CHECK(said({2, 1, 4}, {2, 6, 4}, 0) == "shift_and_sum_cached: the rings have 6 slots, expected one less than a power of two");
  CHECK(said({2, 1, 4}, {1, 7, 4}, 0) == "shift_and_sum_cached: index b is 2 in v_bcd[2 1 4] but 1 in rings_bsd[1 7 4]");
  CHECK(said({2, 1, 4}, {2, 7, 4}, -1) == "shift_and_sum_cached: past is -1, expected 0 .. 9223372036854775806");
  CHECK(said({2, 1, 4}, {2, 7, 4}, INT64_MAX) == "shift_and_sum_cached: past is 9223372036854775807, expected 0 .. 9223372036854775806");
  CHECK(said({2, 1, 4}, {2, 7, 4}, 0, {.dropout = 0.5}) == "shift_and_sum_cached: dropout is 0.5, expected 0");
}
