// rotary against its definition with complex numbers, in f64.
#include "ops/rotary/rotary.h"

#include <complex>
#include <numbers>

#include "tests/ops/values.h"

using namespace ricci;

namespace {

struct Case {
  int64_t b, c, columns;
  RotaryHeads heads;
  int64_t turned, first;
  bool gains;
};
const Case cases[] = {
    {2, 5, 12, {2, 1, 4}, 4, 0, false},
    {2, 5, 17, {2, 1, 5}, 4, 3, true},
    {1, 7, 192, {1, 1, 64}, 64, 100, true},
    {3, 1, 210, {3, 2, 35}, 34, 9, false},
    {1, 3, 520, {1, 1, 257}, 2, 1, true},
    {2, 3, 8, {1, 1, 4}, 0, 0, true},
    {0, 3, 8, {1, 1, 4}, 4, 0, false},
};

double frequency(int64_t i, int64_t r) { return std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(r)); }

// One head: the pairs (i, i + r / 2) are complex numbers, which a position turns.
Values turned(const Values& n, int64_t r, double position) {
  Values y = n;
  for (int64_t i = 0; i < r / 2; ++i) {
    const auto at = static_cast<size_t>(i), pair = static_cast<size_t>(i + r / 2);
    const std::complex<double> z = std::complex(n[at], n[pair]) * std::polar(1.0, position * frequency(i, r));
    y[at] = z.real(), y[pair] = z.imag();
  }
  return y;
}

struct Naive {
  Values y, dx, dgain[2], gain_size[2];

  Naive(const Case& c, const Values& x, const Values (&gain)[2], const Values& dy) : dx(x.size()) {
    const auto k = static_cast<size_t>(c.heads.width);
    const int64_t count = c.heads.queries + c.heads.keys;
    for (int which : {0, 1}) dgain[which] = gain_size[which] = Values(k);
    for (int64_t row = 0; row < c.b * c.c * count; ++row) {
      const auto from = static_cast<size_t>(row / count * c.columns + row % count * c.heads.width), to = static_cast<size_t>(row) * k;
      const double position = static_cast<double>(c.first + row / count % c.c);
      const int which = row % count < c.heads.queries ? 0 : 1;
      double squares = 0, product = 0;
      for (size_t j = 0; j < k; ++j) squares += x[from + j] * x[from + j] / static_cast<double>(k);
      const double s = c.gains ? 1 / std::sqrt(squares + 1e-5) : 1;
      Values n(k), u(dy.begin() + static_cast<long>(to), dy.begin() + static_cast<long>(to + k));
      for (size_t j = 0; j < k; ++j) n[j] = x[from + j] * s * (c.gains ? gain[which][j] : 1);
      const Values rotated = turned(n, c.turned, position);
      y.insert(y.end(), rotated.begin(), rotated.end());
      u = turned(u, c.turned, -position);
      for (size_t j = 0; j < k && c.gains; ++j) {
        dgain[which][j] += u[j] * x[from + j] * s, gain_size[which][j] += std::abs(u[j] * x[from + j] * s);
        u[j] *= gain[which][j], product += u[j] * x[from + j] / static_cast<double>(k);
      }
      for (size_t j = 0; j < k; ++j) dx[from + j] = c.gains ? s * (u[j] - x[from + j] * s * s * product) : u[j];
    }
  }
};

void check(const Case& c, Device device, Dtype dtype) {
  const RotaryHeads& heads = c.heads;
  const Dtype sums = dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32;
  const Tensor x = drawn({c.b, c.c, c.columns}, dtype, device, 1);
  const Tensor dy = drawn({c.b, c.c, (heads.queries + heads.keys) * heads.width}, dtype, device, 2);
  const Tensor gains[2] = {drawn({heads.width}, dtype, device, 3), drawn({heads.width}, dtype, device, 4)};
  const Tensor table = c.turned ? rotary_table(c.first + c.c, c.turned, {}, sums, device) : Tensor();
  const auto op = [&](const std::vector<Tensor>& in) {
    return rotary(in[0], heads, c.gains ? in[1] : Tensor(), c.gains ? in[2] : Tensor(), table, c.first);
  };
  const Naive naive(c, values_of(x), {values_of(gains[0]), values_of(gains[1])}, values_of(dy));
  const double bound = unit(dtype) + (static_cast<double>(4 * heads.width) + 60) * sum_unit(dtype);
  CHECK(error_of(op({x, gains[0], gains[1]}), naive.y) <= bound);
  const std::vector<Tensor> inputs = c.gains ? std::vector{x, gains[0], gains[1]} : std::vector{x};
  const auto got = gradients_of(op, inputs, dy);
  CHECK(error_of(got[0], naive.dx) <= bound);
  for (size_t which = 0; which < 2 && c.gains; ++which)
    CHECK(error_of(got[which + 1], naive.dgain[which], naive.gain_size[which]) <= bound + 100 * sum_unit(dtype));
}

}  // namespace

TEST_CASE("rotary: values and gradients are the definition's, with and without norm, of all columns and of some") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (const Case& c : cases) {
      CAPTURE(c.columns);
      check(c, device, dtype);
    }
  });
}

TEST_CASE("rotary: the scalings of the frequencies") {
  const int64_t r = 16, positions = 5;
  const auto angle = [&](const RotaryFrequencies& f, int64_t i) {  // at position 1
    const Tensor table = rotary_table(positions, r, f, Dtype::f64, Device::cpu);
    return std::atan2(table.data<double>()[r + r / 2 + i], table.data<double>()[r + i]);
  };
  for (int64_t i = 0; i < r / 2; ++i) {
    const double w = frequency(i, r), wavelength = 2 * std::numbers::pi / w;
    CHECK(angle({}, i) == doctest::Approx(w).epsilon(1e-12));
    CHECK(angle({.theta = 100}, i) == doctest::Approx(std::pow(100.0, -static_cast<double>(i) / 8)).epsilon(1e-12));
    CHECK(angle({.scaling = RopeScaling::linear, .factor = 3}, i) == doctest::Approx(w / 3).epsilon(1e-12));
    double expected = w;
    if (wavelength > 1000) {
      expected = w / 32;
    } else if (wavelength >= 100) {
      const double m = (500 / wavelength - 0.5) / (5 - 0.5);
      expected = w * ((1 - m) / 32 + m);
    }
    const RotaryFrequencies llama3{.scaling = RopeScaling::llama3, .factor = 32, .low = 0.5, .high = 5, .trained_ctx = 500};
    CHECK(angle(llama3, i) == doctest::Approx(expected).epsilon(1e-12));
  }
}

TEST_CASE("rotary: the same bits for any number of threads") {
  const Tensor x = drawn({3, 71, 24}, Dtype::f32, Device::cpu, 1), gain = drawn({8}, Dtype::f32, Device::cpu, 2);
  const Tensor dy = drawn({3, 71, 24}, Dtype::f32, Device::cpu, 3), table = rotary_table(71, 8, {}, Dtype::f32, Device::cpu);
  const auto op = [&](const std::vector<Tensor>& in) { return rotary(in[0], {2, 1, 8}, in[1], in[1], table); };
  check_threads([&] {
    std::vector<Tensor> all = gradients_of(op, {x, gain}, dy);
    all.push_back(op({x, gain}));
    return all;
  });
}

TEST_CASE("rotary: messages") {
  const Tensor x({2, 3, 12}), table = rotary_table(3, 4, {}, Dtype::f32, Device::cpu), gain({4}), none;
  const auto message = [&](const RotaryHeads& heads, const Tensor& q, const Tensor& k, const Tensor& table_Cr, int64_t first = 0) {
    return message_of([&] { rotary(x, heads, q, k, table_Cr, first); });
  };
  CHECK(message({2, 1, 4}, none, none, table) == "no error");
  CHECK(message({0, 1, 4}, none, none, table) == "rotary: got 0 query heads and 1 key heads of 4 columns, expected 1 or more of each");
  CHECK(message({2, 2, 4}, none, none, table) == "rotary: x_bcd[2 3 12] does not have 2 + 2 heads of 4 columns");
  const int64_t many = int64_t{1} << 62;  // the sum of two is below 0
  CHECK(message({many, many, 4}, none, none, table) ==
        "rotary: x_bcd[2 3 12] does not have 4611686018427387904 + 4611686018427387904 heads of 4 columns");
  CHECK(message({2, 1, 4}, gain, none, table) == "rotary: k_gain_k is empty, expected both gains or neither");
  CHECK(message({1, 1, 3}, gain, gain, none) == "rotary: the heads have 3 columns and the gains 4, expected the same number");
  CHECK(message({1, 1, 4}, gain, Tensor({3}), none) == "rotary: index k is 4 in q_gain_k[4] but 3 in k_gain_k[3]");
  CHECK(message({1, 1, 4}, none, none, none) == "rotary: expected gains, a table or both, got neither");
  CHECK(message({1, 1, 3}, none, none, table) ==
        "rotary: table_Cr[3 4] rotates 4 columns, expected an even number and at most the 3 of a head");
  CHECK(message({1, 1, 4}, none, none, table, 1) == "rotary: table_Cr has 3 positions, expected 3 from 1 on");
  CHECK(message({1, 1, 4}, none, none, table, INT64_MAX) == "rotary: table_Cr has 3 positions, expected 3 from 9223372036854775807 on");
  CHECK(message({1, 1, 4}, none, none, convert(table, Dtype::f64)) == "rotary: table_Cr is f64, expected f32 for x_bcd in f32");
  Tape tape;
  CHECK(message({1, 1, 4}, none, none, tape.watch(table)) == "rotary: table_Cr is recorded, expected a constant");
  const auto refused = [](int64_t r, const RotaryFrequencies& f) {
    return message_of([&] { rotary_table(3, r, f, Dtype::f32, Device::cpu); });
  };
  CHECK(refused(3, {}) == "rotary_table: r is 3, expected an even number");
  CHECK(refused(4, {.theta = 0}) == "rotary_table: theta is 0, expected a number above 0");
  CHECK(refused(4, {.theta = HUGE_VAL}) == "rotary_table: theta is inf, expected a number above 0");
  CHECK(refused(4, {.factor = -1}) == "rotary_table: the factor is -1, expected a number above 0");
  CHECK(refused(4, {.low = 4}) ==
        "rotary_table: low is 4, high is 4 and trained_ctx is 8192, expected 0 < low < high and trained_ctx above 0");
}
