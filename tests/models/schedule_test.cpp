#include "models/optim/schedule.h"

#include <doctest/doctest.h>

using namespace ricci;

TEST_CASE("warm-up rises to the peak, cosine falls to the minimum and stays") {
  const Schedule s{Schedule::Kind::cosine, 1e-3, 1e-4, 100, 2000};
  CHECK(s.at(0) == doctest::Approx(1e-3 / 101));
  CHECK(s.at(99) == doctest::Approx(1e-3 * 100 / 101));
  CHECK(s.at(100) == doctest::Approx(1e-3));
  CHECK(s.at(1050) == doctest::Approx(5.5e-4));
  CHECK(s.at(2000) == doctest::Approx(1e-4));
  CHECK(s.at(5000) == doctest::Approx(1e-4));
}

TEST_CASE("linear and constant") {
  const Schedule linear{Schedule::Kind::linear, 1, 0, 0, 10}, constant{Schedule::Kind::constant, 1, 0, 3, 10};
  CHECK(linear.at(5) == doctest::Approx(0.5));
  CHECK(linear.at(20) == doctest::Approx(0));
  CHECK(constant.at(9) == 1);
  CHECK(constant.at(1) == doctest::Approx(0.5));
}

TEST_CASE("inverse square root: a quarter of the steps has twice the rate, down to the minimum") {
  const Schedule s{Schedule::Kind::inverse_sqrt, 1e-2, 1e-3, 99, 100000};
  CHECK(s.at(0) == doctest::Approx(1e-4));
  CHECK(s.at(98) == doctest::Approx(0.99e-2));
  CHECK(s.at(99) == doctest::Approx(1e-2));
  CHECK(s.at(399) == doctest::Approx(5e-3));
  CHECK(s.at(1599) == doctest::Approx(2.5e-3));
  CHECK(s.at(9999) == doctest::Approx(1e-3));
  CHECK(s.at(90000) == 1e-3);
  CHECK(Schedule{Schedule::Kind::inverse_sqrt, 1, 0, 0, 100}.at(0) == 1);  // without warm-up
}

TEST_CASE("warm-up, stable, decay") {
  const Schedule s{Schedule::Kind::wsd, 1, 0.1, 10, 1000, 0.2};
  CHECK(s.at(9) == doctest::Approx(10.0 / 11));
  for (int64_t step : {10, 500, 800}) CHECK(s.at(step) == 1);
  CHECK(s.at(900) == doctest::Approx(0.55));
  CHECK(s.at(1000) == doctest::Approx(0.1));
  CHECK(s.at(2000) == doctest::Approx(0.1));
  const Schedule all{Schedule::Kind::wsd, 1, 0, 200, 1000, 1.0}, none{Schedule::Kind::wsd, 1, 0, 0, 1000, 0};
  CHECK(all.at(200) == 1);  // the decay begins after the warm-up
  CHECK(all.at(600) == doctest::Approx(0.5));
  CHECK(none.at(999) == 1);
}

TEST_CASE("the kind is read by name") {
  CHECK(parse_schedule("cosine") == Schedule::Kind::cosine);
  CHECK(parse_schedule("inverse_sqrt") == Schedule::Kind::inverse_sqrt);
  CHECK(parse_schedule("wsd") == Schedule::Kind::wsd);
  CHECK_THROWS_WITH_AS(parse_schedule("cosinus"), "schedule: expected constant, linear, cosine, inverse_sqrt or wsd, got 'cosinus'", Error);
}
