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

TEST_CASE("the kind is read by name") {
  CHECK(parse_schedule("cosine") == Schedule::Kind::cosine);
  CHECK_THROWS_WITH_AS(parse_schedule("cosinus"), "schedule: expected constant, linear or cosine, got 'cosinus'", Error);
}
