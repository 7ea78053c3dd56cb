// The check itself: right gradients pass, wrong ones fail, and a NaN anywhere is wrong.
#include "autograd/gradcheck.h"

#include <cmath>

#include "autograd/record.h"
#include "core/philox.h"
#include "ops/elements/arithmetic.h"
#include "ops/elements/dropout.h"
#include "ops/rows/cross_entropy.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

// y = 2 x. Its backward multiplies by `factor` and adds to an element on the device `wrong_on`.
double factor = 2, off_by = 0;
int64_t off_at = 0;
Device wrong_on = Device::cpu;
Tensor doubled(const Arg& x) {
  const Tensor y = like(x);
  copy(y, x);
  multiply_by(y, 2);
  return record("doubled", {x}, y, keep(), [](const Tensor& dy) -> Grads {
    const Tensor dx = like(dy);
    copy(dx, dy);
    multiply_by(dx, dy.device() == wrong_on ? factor : 2);
    if (off_by != 0) dx.data<double>()[off_at] += off_by;
    return {dx};
  });
}

GradCheck checked(double by, int64_t at) {
  off_by = by, off_at = at;
  return gradcheck([](const std::vector<Parameter>& in) { return std::vector<Tensor>{doubled(in[0]) + in[1]}; },
      {Parameter{drawn({5}, Dtype::f64, Device::cpu, 1), {}, "x"}, Parameter{drawn({5}, Dtype::f64, Device::cpu, 2), {}, "y"}});
}

std::string message_of_doubled(double by, Device device) {
  factor = by, wrong_on = device, off_by = 0;
  return message_of([] { check_gradients(doubled, tensor_of(std::vector<float>{1, 2}, {2})); });
}

}  // namespace

TEST_CASE("gradcheck: right gradients pass") {
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

TEST_CASE("errors of values: a NaN anywhere is an infinite error") {
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

TEST_CASE("check_gradients: a right gradient passes on every device") {
  const auto checks = check_gradients([](const Arg& x, const Arg& y) { return x * y / (x * x + y * y); }, randn({3, 5}, 1), randn({5}, 2));
  REQUIRE(checks.size() == (available(Device::cuda) ? 3 : 2));
  CHECK((checks[0].device == Device::cpu && checks[1].device == Device::cuda_emulated));
  for (const DeviceCheck& check : checks) CHECK((check.result.worst <= kGradientTolerance && check.result.ops.size() == 5));
}

TEST_CASE("check_gradients: integers stay integers, and every call draws the same dropout") {
  const auto loss = [](const Arg& logits, const Arg& targets) { return cross_entropy(dropout(logits, 0.3), targets); };
  set_random_state({5, 1});
  const auto checks = check_gradients(loss, randn({4, 7}, 1), tensor_of(std::vector<int64_t>{0, 6, 3, 3}, {4}));
  CHECK(checks[0].result.least_norm > 0);
  CHECK(random_state() == RandomState{5, 1});
}

TEST_CASE("check_gradients: a wrong gradient is an error that names device, input and element") {
  for (const Device device : {Device::cpu, Device::cuda_emulated}) {
    const std::string message = message_of_doubled(2.5, device);
    CHECK(message.starts_with(std::string("check_gradients: on ") + name_of(device) + ", input 0, element "));
    CHECK(message.find(" by differences, ") != std::string::npos);
  }
  CHECK(message_of_doubled(2, Device::cpu) == "no error");
}

TEST_CASE("check_gradients: a gradient that is zero everywhere proves nothing") {
  CHECK(message_of([] { check_gradients([](const Arg& x) { return x - x; }, randn({3}, 1)); }) ==
        "check_gradients: on cpu, a gradient is zero everywhere");
}
