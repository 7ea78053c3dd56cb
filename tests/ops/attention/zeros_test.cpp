// A query that sees no key gives exactly zero and passes no gradient: under every rule, in every dtype, on every device.
#include <vector>

#include "tests/ops/attention/cases.h"

using namespace ricci;

namespace {

Case three(int64_t b, int64_t c, int64_t keys, const Visibility& sees, std::vector<int64_t> lengths = {}, int64_t width = 5) {
  return {b, c, 2, width, sees, 0, std::move(lengths), Place::three_tensors, keys};
}

}  // namespace

TEST_CASE("what padding holds is not read, and a sequence without keys gives zero") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    const auto sees = [](int64_t t, int64_t j) { return t - j < 30; };
    check_zeros({3, 70, 2, 5, tokens(false, 30), 0, {0, 3, 66}}, dtype, device, sees);
    check_zeros({3, 70, 1, 32, tokens(false, 30), 0, {0, 3, 66}}, dtype, device, sees);
  });
}

TEST_CASE("the first queries see no cell, the last cells are seen by none") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (int64_t width : {5, 32}) {
      // Only keys 3 or 4 positions back: queries 0, 1, 2 see none, and nobody sees the last three keys.
      check_zeros(three(1, 70, 70, Visibility::cells(1, 3, 5), {}, width), dtype, device,
          [](int64_t t, int64_t j) { return t - j == 3 || t - j == 4; });
      // The last tokens of the cells are 8 .. 39 tokens back.
      check_zeros(three(2, 150, 37, Visibility::cells(4, 8, 40, CellRule::end), {37, 2}, width), dtype, device,
          [](int64_t t, int64_t j) { return t - (4 * j + 3) >= 8 && t - (4 * j + 3) < 40; });
      // Each cell is seen by a single query.
      check_zeros(
          three(1, 150, 9, Visibility::cells(16, 0, 16), {}, width), dtype, device, [](int64_t t, int64_t j) { return t == 16 * j + 15; });
    }
  });
}

TEST_CASE("no query sees a key") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    const auto nothing = [](int64_t, int64_t) { return false; };
    for (int64_t width : {5, 32}) {
      check_zeros(three(1, 70, 70, Visibility::cells(1, 100, 200), {}, width), dtype, device, nothing);
      check_zeros(three(2, 140, 35, Visibility::cells(4, 200, 400), {}, width), dtype, device, nothing);
      check_zeros(three(2, 3, 2, Visibility::cells(4), {}, width), dtype, device, nothing);
      check_zeros(three(2, 6, 6, Visibility::causal(), {0, 0}, width), dtype, device, nothing);
    }
  });
}

TEST_CASE("no keys, no queries, no sequences") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (int64_t width : {5, 32})
      for (const Case& of : std::vector<Case>{three(2, 3, 0, Visibility::cells(4), {}, width),
               three(2, 0, 7, Visibility::cells(4), {}, width), three(2, 0, 0, Visibility::causal(), {}, width),
               three(0, 5, 5, Visibility::causal(), {}, width), three(2, 3, 0, Visibility::cells(4), {0, 0}, width)})
        for (Attention f : {attention, naive_attention}) {
          CAPTURE(of.text());
          const ForwardAndBackward got = run(f, of, dtype, device);
          CHECK(got.y.shape() == Shape{of.b, of.c, of.d()});
          for (double value : values_of(got.y)) CHECK(value == 0);
          const std::vector<Tensor> inputs = of.inputs();
          for (size_t i = 0; i < inputs.size(); ++i) {
            CHECK(got.gradients[i].shape() == inputs[i].shape());
            for (double value : values_of(got.gradients[i])) CHECK(value == 0);
          }
        }
    const Case empty{0, 5, 2, 2};
    CHECK(run(attention, empty, dtype, device).gradients[0].shape() == Shape{0, 5, 12});
  });
}
