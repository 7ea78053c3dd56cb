// Ticks at round numbers, their labels, and ranges of axes.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "apps/lab/drawing/chart.h"

using namespace ricci::apps;

namespace {

std::string labels(const Axis& axis, int most) {
  std::string text;
  for (const Tick& tick : ticks(axis, most)) text += (text.empty() ? "" : " ") + tick.label;
  return text;
}

}  // namespace

TEST_CASE("axis: linear ticks stand at round numbers and their labels agree in decimals and unit") {
  CHECK(labels({0, 1}, 5) == "0 0.2 0.4 0.6 0.8 1.0");
  CHECK(labels({0, 300}, 4) == "0 100 200 300");
  CHECK(labels({1.37, 4.62}, 7) == "1.5 2.0 2.5 3.0 3.5 4.0 4.5");
  CHECK(labels({0, 1800}, 8) == "0 500 1,000 1,500");
  CHECK(labels({0, 25000}, 6) == "0 5k 10k 15k 20k 25k");
  CHECK(labels({0, 2.4e6}, 6) == "0 0.5M 1.0M 1.5M 2.0M");
  CHECK(labels({0, 6e-4}, 4) == "0 2e-4 4e-4 6e-4");
  CHECK(labels({6.1, 13.9}, 4) == "8 10 12");
  CHECK(labels({-2, 2}, 5) == "-2 -1 0 1 2");
  CHECK(labels({3.001, 3.002}, 6) == "3.0010 3.0012 3.0014 3.0016 3.0018 3.0020");
}

TEST_CASE("axis: logarithmic ticks") {
  CHECK(labels({0.1, 100, true}, 10) == "0.1 0.2 0.5 1 2 5 10 20 50 100");
  CHECK(labels({0.1, 100, true}, 5) == "0.1 1 10 100");
  CHECK(labels({2, 6, true}, 6) == "2 3 4 5 6");  // less than a decade
  CHECK(labels({1e-5, 1e-3, true}, 3) == "1e-5 1e-4 0.001");
}

TEST_CASE("axis: for any range there are ticks inside it, ascending, not too many, with labels of their own") {
  for (const double low : {-7.3e5, -1.0, 0.0, 1e-9, 0.37, 12345.678})
    for (const double width : {1e-6, 0.013, 1.0, 777.0, 3.1e8})
      for (int most = 4; most <= 12; ++most) {
        if (width < 1e-6 * std::abs(low)) continue;  // labels of 16 digits help nobody
        const Axis axis{low, low + width};
        const std::vector<Tick> all = ticks(axis, most);
        CHECK(all.size() >= 2);
        CHECK(static_cast<int>(all.size()) <= most + 1);
        for (size_t i = 0; i < all.size(); ++i) {
          CHECK(axis.share(all[i].value) >= -1e-5);
          CHECK(axis.share(all[i].value) <= 1 + 1e-5);
          if (i) CHECK(all[i].label != all[i - 1].label);
        }
      }
}

TEST_CASE("axis: shares") {
  CHECK(Axis{2, 6}.share(3) == doctest::Approx(0.25));
  CHECK(Axis{1, 10000, true}.share(10) == doctest::Approx(0.25));
}

TEST_CASE("axis: ranges hold all values, one alone or none too") {
  const auto around = [](std::vector<double> values, bool log = false) { return axis_around(values, log, true); };
  CHECK(around({}).low < around({}).high);
  CHECK(around({0}).low < 0);
  CHECK(around({5}).low < 5);
  CHECK(around({5}).high > 5);
  CHECK(around({5}, true).low == 2.5);
  CHECK(around({1e-3, 1e-3 * (1 + 1e-15)}).high == doctest::Approx(1.5e-3));
  CHECK(around({1, 10}).low == 0);  // as the least is far below the greatest
  CHECK(around({8, 10}).low == doctest::Approx(7.92));
  CHECK(around({8, 10}).high == doctest::Approx(10.08));
  CHECK(around({1, 100}, true).low == doctest::Approx(std::pow(100, -0.04)));
  CHECK(axis_around(std::vector<double>{0, 300}, false, false).high == 300);
}

TEST_CASE("axis: ticks at given places, where their labels have room") {
  CHECK(labels({.low = 32, .high = 64, .log = true, .at = {32, 64}}, 6) == "32 64");
  CHECK(labels({.low = 128, .high = 16384, .log = true, .at = {128, 512, 1024, 16384}}, 6) == "128 512 1,024 16,384");
  CHECK(labels({.low = 100, .high = 1000, .log = true, .at = {100, 101, 1000}}, 10) == "100 200 500 1,000");
}
