// The check itself: what is right passes, what is wrong fails, and a NaN is wrong wherever it stands.
#include "autograd/gradcheck.h"

#include <cmath>

#include "autograd/record.h"
#include "ops/elements/arithmetic.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

// y = 2 x with a gradient of which one element is off.
double off_by = 0;
int64_t off_at = 0;
Tensor doubled(const Arg& x) {
  Tensor y = like(x);
  copy(y, convert(x, x.dtype()));
  multiply_by(y, 2);
  return record("doubled", {x}, y, keep(), [](const Tensor& dy) -> Grads {
    Tensor dx = like(dy);
    copy(dx, dy);
    multiply_by(dx, 2);
    dx.data<double>()[off_at] += off_by;
    return {dx};
  });
}

GradCheck checked(double by, int64_t at) {
  off_by = by, off_at = at;
  return gradcheck([](const std::vector<Parameter>& in) { return std::vector<Tensor>{doubled(in[0]) + in[1]}; },
      {Parameter{drawn({5}, Dtype::f64, Device::cpu, 1), {}, "x"}, Parameter{drawn({5}, Dtype::f64, Device::cpu, 2), {}, "y"}});
}

}  // namespace

TEST_CASE("gradcheck: what is right passes") {
  const GradCheck result = checked(0, 0);
  CHECK(result.worst < 1e-8);
  CHECK(result.least_norm > 0);
  CHECK(result.ops == std::vector<std::string>{"doubled", "add"});
}

TEST_CASE("gradcheck: one wrong element fails and is named, be it NaN or infinite") {
  for (int64_t at : {0, 2, 4}) {
    const GradCheck wrong = checked(0.5, at);
    CHECK(wrong.worst > 0.01);
    CHECK(wrong.worst_at.starts_with("input 0, element " + std::to_string(at) + ": "));
    for (double value : {double(NAN), HUGE_VAL, -HUGE_VAL}) {
      const GradCheck result = checked(value, at);
      CHECK(result.worst == HUGE_VAL);
      CHECK(result.worst_at.starts_with("input 0, element " + std::to_string(at) + ": "));
    }
  }
}

TEST_CASE("gradcheck: a gradient that is zero everywhere has no norm") {
  const GradCheck result = gradcheck([](const std::vector<Parameter>& in) { return std::vector<Tensor>{in[0] * 0.0 + in[1]}; },
      {Parameter{drawn({5}, Dtype::f64, Device::cpu, 1), {}, "x"}, Parameter{drawn({5}, Dtype::f64, Device::cpu, 2), {}, "y"}});
  CHECK(result.least_norm == 0);
}

TEST_CASE("errors of values: a NaN among them is infinite, wherever it stands") {
  for (size_t at : {0, 1, 2}) {
    Values values{1, 2, 3};
    const Values expected = values;
    values[at] = NAN;
    const Tensor got = tensor_of(values, {3}, Dtype::f64, Device::cpu), sound = tensor_of(expected, {3}, Dtype::f64, Device::cpu);
    CHECK(error_of(sound, expected) == 0);
    CHECK(error_of(got, expected) == HUGE_VAL);
    CHECK(error_of(got, expected, {1, 1, 1}) == HUGE_VAL);
    CHECK(error_of(sound, values) == HUGE_VAL);
    CHECK(error_of(sound, {1, 2, 6}) == 0.5);
    CHECK(error_of(sound, {1, 2, 6}, {1, 1, 12}) == 0.25);
  }
}
