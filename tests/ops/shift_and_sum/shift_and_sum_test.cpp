#include "core/cpu/parallel.h"
#include "tests/ops/shift_and_sum/cases.h"

using namespace ricci;

namespace {

const std::vector<ShiftCase> kCases = {{1, 1, 1, 1, 1}, {1, 2, 1, 1, 1}, {2, 3, 1, 5, 2}, {1, 5, 3, 1, 3}, {2, 6, 2, 4, 3}, {2, 7, 1, 3, 3},
    {1, 8, 2, 8, 3}, {1, 13, 2, 5, 4}, {2, 16, 1, 17, 4}, {1, 17, 1, 33, 5}, {1, 19, 4, 7, 5}, {1, 33, 2, 16, 6}, {1, 7, 1, 4, 2},
    {1, 5, 2, 3, 6}, {1, 129, 1, 36, 8}, {1, 70, 3, 12, 7}, {1, 64, 1, 33, 6}, {1, 512, 1, 5, 9}};

// V^R[i] = sum over j of V^0[j] times one coefficient for every binary digit of i - j, from the highest to the lowest. It is
// read at the position that the walk from i back to j has reached so far.
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
std::vector<double> errors(ShiftAndSum f, const ShiftCase& of, Device device, Dtype dtype) {
  const Tensor v = of.v(dtype, device), coef = of.coef(dtype, device), dy = of.dy(dtype, device);
  const auto wide = [](const Tensor& t) { return to(convert(t, Dtype::f64), Device::cpu); };
  const auto expected = outcome_of(naive_shift_and_sum, of, {wide(v), wide(coef)}, wide(dy));
  const auto got = outcome_of(f, of, {v, coef}, dy);
  std::vector<double> all;
  for (size_t i = 0; i < got.size(); ++i) all.push_back(error_of(got[i], values_of(expected[i])));
  return all;
}

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
      CAPTURE(of.c);
      CAPTURE(of.width);
      const auto ours = errors(shift_and_sum, of, device, dtype), plain = errors(naive_shift_and_sum, of, Device::cpu, dtype);
      for (size_t i = 0; i < ours.size(); ++i) CHECK(ours[i] <= 2 * plain[i] + 8 * sum_unit(dtype) * static_cast<double>(of.width));
    }
  });
}

TEST_CASE("shift_and_sum: the backward keeps the values and the coefficients alone") {
  const ShiftCase of{2, 19, 2, 8, 5};
  Tape tape;
  const Tensor v = tape.watch(of.v(Dtype::f32, Device::cpu)), coef = tape.watch(of.coef(Dtype::f32, Device::cpu));
  shift_and_sum(v, coef, of.options());
  CHECK(tape.kept_bytes() == v.bytes() + coef.bytes());
}

TEST_CASE("shift_and_sum: the bits do not depend on the number of threads") {
  const ShiftCase of{1, 300, 1, 100, 9};
  const int before = thread_count();
  std::vector<std::vector<Tensor>> outcomes;
  for (int threads : {1, 2, 5}) {
    set_thread_count(threads);
    outcomes.push_back(
        outcome_of(shift_and_sum, of, {of.v(Dtype::f32, Device::cpu), of.coef(Dtype::f32, Device::cpu)}, of.dy(Dtype::f32, Device::cpu)));
  }
  set_thread_count(before);
  for (const auto& outcome : outcomes)
    for (size_t i = 0; i < outcome.size(); ++i) CHECK(same_bits(outcome[i], outcomes[0][i]));
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

TEST_CASE("shift_and_sum: no elements") {
  CHECK(shift_and_sum(Tensor({0, 3, 4}), Tensor({0, 3, 2}), {}).shape() == Shape({0, 3, 4}));
  CHECK(shift_and_sum(Tensor({2, 0, 4}), Tensor({2, 0, 2}), {}).shape() == Shape({2, 0, 4}));
  const auto sum = [](const std::vector<Tensor>& in) { return shift_and_sum(in[0], in[1], {}); };
  const auto gradients = gradients_of(sum, {Tensor({2, 3, 0}), Tensor({2, 3, 2})}, Tensor({2, 3, 0}));
  CHECK(values_of(gradients[1]) == Values(12));
}

TEST_CASE("shift_and_sum: messages") {
  const auto said = [](Shape v, Shape coef, ShiftAndSumOptions options) {
    return message_of([&] { shift_and_sum(Tensor(v), Tensor(coef), options); });
  };
  CHECK(said({2, 3, 4}, {2, 5, 2}, {}) == "shift_and_sum: index c is 3 in v_bcd[2 3 4] but 5 in coef_bcx[2 5 2]");
  CHECK(said({2, 3, 5}, {2, 3, 4}, {.heads = 2}) == "shift_and_sum: 5 columns of v are not a multiple of 2 heads");
  CHECK(said({2, 3, 4}, {2, 3, 5}, {.heads = 2}) == "shift_and_sum: 5 coefficients of a position are not a multiple of 2 heads");
  CHECK(said({2, 3, 4}, {2, 3, 31}, {}) == "shift_and_sum: 31 levels, expected 1 .. 30");
  CHECK(said({2, 3, 4}, {2, 3, 0}, {}) == "shift_and_sum: 0 levels, expected 1 .. 30");
  CHECK(said({2, 3, 4}, {2, 3, 2}, {.heads = 0}) == "shift_and_sum: heads is 0, expected at least 1");
  CHECK(said({2, 3, 4}, {2, 3, 2}, {.dropout = -0.1}) == "shift_and_sum: dropout is -0.1, expected 0 or more and less than 1");
  CHECK(said({2, 3, 4}, {2, 3, 2}, {.dropout = 1}) == "shift_and_sum: dropout is 1, expected 0 or more and less than 1");
}
