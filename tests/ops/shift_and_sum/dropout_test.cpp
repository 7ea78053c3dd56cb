// Dropout of levels.
#include "tests/ops/shift_and_sum/cases.h"

using namespace ricci;

namespace {

// The number of times that each level was skipped in `calls` calls: position 2^r hears the first value through level r alone.
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

}  // namespace

TEST_CASE("shift_and_sum: with dropout values and gradients are those of the definition with the same levels left out") {
  on_every_device([](Device device) {
    for (const ShiftCase& of : {ShiftCase{2, 13, 2, 5, 4, 0.5}, ShiftCase{1, 40, 1, 20, 6, 0.7}, ShiftCase{1, 33, 1, 3, 6, 0.3, false}})
      for (uint64_t stream = 0; stream < 8; ++stream) {
        const auto expected = outcome_of(naive_shift_and_sum, of, {of.v(Dtype::f64, Device::cpu), of.coef(Dtype::f64, Device::cpu)},
            of.dy(Dtype::f64, Device::cpu), stream);
        const auto got =
            outcome_of(shift_and_sum, of, {of.v(Dtype::f64, device), of.coef(Dtype::f64, device)}, of.dy(Dtype::f64, device), stream);
        for (size_t i = 0; i < got.size(); ++i) CHECK(error_of(got[i], values_of(expected[i])) < 1e-13);
      }
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
