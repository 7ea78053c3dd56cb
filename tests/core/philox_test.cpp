// Philox against the known answers of Random123, and samples from it against their distributions.
#include "core/philox.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "core/error.h"
#include "core/random.h"

using namespace ricci;

namespace {

// Pearson's statistic of counts that should all be `expected`: chi-square distributed.
// True unless it is beyond four standard deviations: a sound generator fails once in about 30000 experiments.
bool are_even(const std::vector<double>& counts, double expected) {
  const double n = static_cast<double>(counts.size());
  double sum = 0;
  for (double count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum < n + 4 * std::sqrt(2 * n) + 8;
}

void check_block(uint64_t index, uint64_t stream, uint64_t seed, const Philox::Block& expected) {
  const Philox::Block b = Philox{seed, stream}.block(index);
  for (int k = 0; k < 4; ++k) CHECK(b.v[k] == expected.v[k]);
}

struct Moments {
  double mean = 0, variance = 0, skewness = 0, kurtosis = 0;
};

template <class T> Moments moments(const std::vector<T>& x) {
  Moments m;
  const double n = static_cast<double>(x.size());
  for (double value : x) m.mean += value / n;
  for (double value : x) m.variance += (value - m.mean) * (value - m.mean) / n;
  for (double value : x) {
    const double z = (value - m.mean) / std::sqrt(m.variance);
    m.skewness += z * z * z / n;
    m.kurtosis += z * z * z * z / n;
  }
  return m;
}

// The largest distance between the distribution of x and that of `below`, times sqrt(n) (Kolmogorov and Smirnov).
template <class F> double distance(std::vector<double> x, F below) {
  std::sort(x.begin(), x.end());
  const double n = static_cast<double>(x.size());
  double most = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = below(x[i]), rank = static_cast<double>(i);
    most = std::max({most, std::abs(expected - rank / n), std::abs(expected - (rank + 1) / n)});
  }
  return most * std::sqrt(n);
}

std::vector<uint64_t> elements(const Permutation& permutation) {
  std::vector<uint64_t> order;
  for (uint64_t i = 0; i < permutation.size(); ++i) order.push_back(permutation(i));
  return order;
}

}  // namespace

TEST_CASE("philox: known answers") {
  check_block(0, 0, 0, {{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}});
  check_block(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, {{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}});
  check_block(0x85a308d3243f6a88u, 0x0370734413198a2eu, 0x299f31d0a4093822u, {{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}});
}

TEST_CASE("philox: numbers are the words of the blocks in order") {
  const Philox random{17, 4};
  for (uint64_t i = 0; i < 40; ++i) {
    const Philox::Block b = random.block(i / 4);
    CHECK(random.bits(i) == b.v[i % 4]);
    CHECK(random.uniform(i) == static_cast<float>(std::ldexp(b.v[i % 4] / 256, -24)));
    const Philox::Block two = random.block(i / 2);
    const uint32_t* half = two.v + 2 * (i % 2);
    CHECK(random.uniform_f64(i) == std::ldexp(static_cast<double>(uint64_t{half[1] / 32} << 26 | half[0] / 64), -53));
  }
  CHECK(Philox::unit_f32(0xffffffffu) == 1 - 0x1p-24f);
  CHECK(Philox::unit_f64(0xffffffffu, 0xffffffffu) == 1 - 0x1p-53);
  CHECK(Philox::unit_f32(0xff) == 0);
  CHECK(Philox::unit_f64(0x3f, 0x1f) == 0);
}

TEST_CASE("philox: uniform numbers") {
  constexpr uint64_t n = 300001;
  for (const Philox random : {Philox{0, 0}, Philox{0, 1}, Philox{1, 0}, Philox{~uint64_t{0}, 5}}) {
    std::vector<double> x, xd, counts(1000);
    for (uint64_t i = 0; i < n; ++i) x.push_back(random.uniform(i)), xd.push_back(random.uniform_f64(i));
    for (double value : x) {
      REQUIRE(value >= 0);
      REQUIRE(value < 1);
      ++counts[static_cast<size_t>(value * 1000)];
    }
    CHECK(are_even(counts, n / 1000.0));
    for (const std::vector<double>& values : {x, xd}) {
      const Moments m = moments(values);
      CHECK(std::abs(m.mean - 0.5) < 4 * std::sqrt(1.0 / 12 / n));
      CHECK(std::abs(m.variance - 1.0 / 12) < 4 * std::sqrt(1.0 / 180 / n));
      CHECK(distance(values, [](double u) { return u; }) < 2.2);
      double neighbours = 0;
      for (size_t i = 1; i < n; ++i) neighbours += (values[i] - 0.5) * (values[i - 1] - 0.5) * 12;
      CHECK(std::abs(neighbours) < 4 * std::sqrt(static_cast<double>(n)));
    }
  }
}

TEST_CASE("philox: seeds and streams differ in every block") {
  const Philox random{7, 7};
  const uint64_t high = uint64_t{1} << 63;
  for (uint64_t i = 0; i < 1000; ++i)
    for (const Philox other : {Philox{8, 7}, Philox{7, 8}, Philox{7 | high, 7}, Philox{7, 7 | high}})
      CHECK(random.bits(i) != other.bits(i));
}

TEST_CASE("random: normal values") {
  const Philox random{11, 3};
  std::vector<double> x(200000);
  fill_normal(x.data(), static_cast<int64_t>(x.size()), 0, 1, random);
  const Moments m = moments(x);
  const double n = static_cast<double>(x.size());
  CHECK(std::abs(m.mean) < 4 / std::sqrt(n));
  CHECK(std::abs(m.variance - 1) < 4 * std::sqrt(2 / n));
  CHECK(std::abs(m.skewness) < 4 * std::sqrt(6 / n));
  CHECK(std::abs(m.kurtosis - 3) < 4 * std::sqrt(24 / n));
  CHECK(distance(x, [](double z) { return std::erfc(-z / std::sqrt(2.0)) / 2; }) < 2.2);
  for (size_t i = 0; i < 1000; i += 2) {  // a pair is a point of the plane, its square -2 ln u
    const double u = 1 - random.uniform_f64(i), turn = random.uniform_f64(i + 1) * 6.283185307179586;
    CHECK(x[i] * x[i] + x[i + 1] * x[i + 1] == doctest::Approx(-2 * std::log(u)).epsilon(1e-13));
    CHECK(std::cos(std::atan2(x[i + 1], x[i]) - turn) == doctest::Approx(1).epsilon(1e-13));
  }
  double pairs = 0;  // the two values of a pair are independent
  for (size_t i = 0; i < x.size(); i += 2) pairs += x[i] * x[i + 1];
  CHECK(std::abs(pairs) < 4 * std::sqrt(n / 2));
}

TEST_CASE("random: a fill in pieces, shifted, scaled or in f32 draws the same values") {
  const Philox random{5, 9};
  std::vector<double> whole(101), pieces(101), uniform(101), uniform_pieces(101);
  fill_normal(whole.data(), 101, 0, 1, random);
  fill_uniform(uniform.data(), 101, 0, 1, random);
  for (int64_t begin = 0, n = 1; begin < 101; begin += n, n = std::min<int64_t>(n + 1, 101 - begin)) {
    fill_normal(pieces.data() + begin, n, 0, 1, random, static_cast<uint64_t>(begin));
    fill_uniform(uniform_pieces.data() + begin, n, 0, 1, random, static_cast<uint64_t>(begin));
  }
  CHECK(whole == pieces);
  CHECK(uniform == uniform_pieces);
  std::vector<float> scaled(101), between(101);
  fill_normal(scaled.data(), 101, 3, 0.5, random);
  fill_uniform(between.data(), 101, -2, 6, random);
  for (size_t i = 0; i < 101; ++i) {
    CHECK(scaled[i] == static_cast<float>(3 + 0.5 * whole[i]));
    CHECK(between[i] == static_cast<float>(-2 + 8 * uniform[i]));
  }
}

TEST_CASE("random: uniform values stay below the upper end") {
  std::vector<float> x(1000);
  const float next = std::nextafter(1.0f, 2.0f);
  fill_uniform(x.data(), 1000, 1, next, {1, 1});  // half of the samples would be rounded up to it
  for (float value : x) CHECK(value == 1);
  fill_uniform(x.data(), 1000, 4, 4, {1, 1});
  for (float value : x) CHECK(value == 4);
}

TEST_CASE("random: arguments without a meaning are errors") {
  double x[1];
  CHECK_THROWS_WITH_AS(fill_normal(x, -1, 0, 1, {}), "fill_normal: n is -1, expected at least 0", Error);
  CHECK_THROWS_WITH_AS(fill_normal(x, 1, 0, -2, {}), "fill_normal: deviation is -2, expected at least 0", Error);
  CHECK_THROWS_WITH_AS(fill_uniform(x, -1, 0, 1, {}), "fill_uniform: n is -1, expected at least 0", Error);
  CHECK_THROWS_WITH_AS(fill_uniform(x, 1, 2, 1, {}), "fill_uniform: low is 2, expected at most high = 1", Error);
  CHECK_THROWS_WITH_AS(fill_uniform(x, 1, NAN, 1, {}), "fill_uniform: low is nan, expected at most high = 1", Error);
  CHECK_THROWS_WITH_AS(index_below(0, {}, 0), "index_below: n is 0, expected at least 1", Error);
  CHECK_THROWS_WITH_AS(Permutation(5, 1)(5), "permutation: index 5 is not below 5", Error);
  CHECK_THROWS_WITH_AS(Permutation(0, 1)(0), "permutation: index 0 is not below 0", Error);
}

TEST_CASE("random: all indices are equally likely") {
  for (uint64_t n : {1u, 2u, 7u, 100u}) {
    std::vector<double> counts(n);
    for (uint64_t i = 0; i < 100000; ++i) {
      const uint64_t index = index_below(n, {2, 3}, i);
      REQUIRE(index < n);
      ++counts[index];
    }
    CHECK(are_even(counts, 100000.0 / static_cast<double>(n)));
  }
  // With n = 3/4 of 2^64 a remainder would favour the lowest third, and a plain product every third index.
  const uint64_t n = uint64_t{3} << 62;
  std::vector<double> thirds(3), remainders(3);
  for (uint64_t i = 0; i < 30000; ++i) {
    const uint64_t index = index_below(n, {4, 5}, i);
    REQUIRE(index < n);
    ++thirds[index >> 62];
    ++remainders[index % 3];
  }
  CHECK(are_even(thirds, 10000));
  CHECK(are_even(remainders, 10000));
}

TEST_CASE("random: a permutation reaches every element once") {
  for (uint64_t n : {1u, 2u, 3u, 63u, 64u, 65u, 127u, 1001u, 4096u, 99991u}) {
    std::vector<int> seen(n);
    for (uint64_t element : elements(Permutation(n, 42))) {
      REQUIRE(element < n);
      ++seen[element];
    }
    CHECK(std::count(seen.begin(), seen.end(), 1) == static_cast<int64_t>(n));
  }
  const Permutation largest(~uint64_t{0}, 1);
  CHECK(largest(0) != largest(1));
  CHECK(largest(~uint64_t{0} - 1) < ~uint64_t{0});
}

TEST_CASE("random: a permutation depends only on its seed, and all orders are equally likely") {
  CHECK(elements(Permutation(1001, 1)) == elements(Permutation(1001, 1)));
  CHECK(elements(Permutation(1001, 1)) != elements(Permutation(1001, 2)));
  for (uint64_t n : {3u, 4u, 5u}) {
    constexpr uint64_t kSeeds = 24000;
    std::map<std::vector<uint64_t>, double> counts;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) ++counts[elements(Permutation(n, seed))];
    const size_t orders = n == 3 ? 6 : n == 4 ? 24 : 120;
    CHECK(counts.size() == orders);
    std::vector<double> values;
    for (const auto& [order, count] : counts) values.push_back(count);
    CHECK(are_even(values, static_cast<double>(kSeeds) / static_cast<double>(orders)));
  }
}
