#include "models/training/schedule.h"

#include <doctest/doctest.h>

using namespace ricci;

namespace {

// Rates are small: relative to themselves, and not to 1 as doctest has it.
doctest::Approx about(double rate) { return doctest::Approx(rate).scale(0).epsilon(1e-12); }

}  // namespace

TEST_CASE("warm-up rises to the peak, cosine falls to the minimum and stays") {
  const Schedule s{Schedule::Kind::cosine, 1e-3, 1e-4, 100};
  CHECK(s.rate(0, 2000) == about(1e-3 / 101));
  CHECK(s.rate(99, 2000) == about(1e-3 * 100 / 101));
  CHECK(s.rate(100, 2000) == about(1e-3));
  CHECK(s.rate(1050, 2000) == about(5.5e-4));
  CHECK(s.rate(2000, 2000) == about(1e-4));
  CHECK(s.rate(5000, 2000) == about(1e-4));
}

TEST_CASE("linear and constant") {
  const Schedule linear{Schedule::Kind::linear, 1, 0, 0}, constant{Schedule::Kind::constant, 1, 0, 3};
  CHECK(linear.rate(5, 10) == about(0.5));
  CHECK(linear.rate(20, 10) == 0);
  CHECK(constant.rate(9, 10) == 1);
  CHECK(constant.rate(1, 10) == about(0.5));
}

TEST_CASE("inverse square root: a quarter of the steps has twice the rate, down to the minimum") {
  const Schedule s{Schedule::Kind::inverse_sqrt, 1e-2, 1e-3, 99};
  CHECK(s.rate(0, 100000) == about(1e-4));
  CHECK(s.rate(98, 100000) == about(0.99e-2));
  CHECK(s.rate(99, 100000) == about(1e-2));
  CHECK(s.rate(399, 100000) == about(5e-3));
  CHECK(s.rate(1599, 100000) == about(2.5e-3));
  CHECK(s.rate(9999, 100000) == about(1e-3));
  CHECK(s.rate(90000, 100000) == 1e-3);
  CHECK(Schedule{Schedule::Kind::inverse_sqrt, 1, 0, 0}.rate(0, 100000) == 1);  // without warm-up
}

TEST_CASE("warm-up, stable, decay") {
  const Schedule s{Schedule::Kind::wsd, 1, 0.1, 10, 0.2};
  CHECK(s.rate(9, 1000) == about(10.0 / 11));
  for (int64_t step : {10, 500, 800}) CHECK(s.rate(step, 1000) == 1);
  CHECK(s.rate(900, 1000) == about(0.55));
  CHECK(s.rate(1000, 1000) == about(0.1));
  CHECK(s.rate(2000, 1000) == about(0.1));
  const Schedule all{Schedule::Kind::wsd, 1, 0, 200, 1.0}, none{Schedule::Kind::wsd, 1, 0, 0, 0};
  CHECK(all.rate(200, 1000) == 1);  // the decay begins after the warm-up
  CHECK(all.rate(600, 1000) == about(0.5));
  CHECK(none.rate(999, 1000) == 1);
}

TEST_CASE("the kind is read by name") {
  for (const char* name : {"constant", "linear", "cosine", "inverse_sqrt", "wsd"})
    CHECK(std::string(name_of(choice_of<Schedule::Kind>("schedule", name))) == name);
  CHECK_THROWS_WITH_AS(choice_of<Schedule::Kind>("schedule", "cosinus"),
      "schedule: expected one of cosine, linear, constant, inverse_sqrt, wsd, got 'cosinus'", Error);
}
