// Means over seeds and how far they may be off.
#include "apps/lab/report/statistics.h"

#include <doctest/doctest.h>

#include "tests/data/files.h"

using namespace ricci::apps;
using test_data::error_of;

TEST_CASE("statistics: means, deviations and intervals") {
  CHECK(mean_spread({2, 4, 6}).mean == doctest::Approx(4));
  CHECK(mean_spread({2, 4, 6}).deviation == doctest::Approx(2));
  CHECK(mean_spread({5}).deviation == 0);
  CHECK(mean_spread({5}).half_width == 0);
  CHECK(mean_spread({2, 4, 6}).half_width == doctest::Approx(4.968276).epsilon(1e-4));  // scipy.stats.t.interval(0.95, 2, 4, 2 / sqrt(3))
}

TEST_CASE("statistics: Student's t") {  // scipy.stats.t.ppf(0.975, n)
  constexpr struct {
    size_t n;
    double t;
  } kKnown[] = {{1, 12.706205}, {4, 2.776445}, {10, 2.228139}, {11, 2.200985}, {15, 2.131450}, {30, 2.042272}, {1000, 1.962339}};
  for (const auto& [n, t] : kKnown) CHECK(student_t(n) == doctest::Approx(t).epsilon(2e-3));
  for (size_t n = 2; n < 40; ++n) CHECK(student_t(n) < student_t(n - 1));
  CHECK(error_of([] { student_t(0); }) == "student_t: 0 degrees of freedom, expected at least 1");
}
