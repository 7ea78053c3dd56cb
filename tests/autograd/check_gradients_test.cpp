// The check of a function of one's own: right ones pass on every device, and what is wrong is said in one line.
#include "autograd/gradcheck.h"
#include "autograd/random.h"
#include "autograd/record.h"
#include "cuda/device/device.h"
#include "ops/elements/arithmetic.h"
#include "ops/elements/dropout.h"
#include "ops/rows/cross_entropy.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

// y = 2 x, whose backward multiplies by `factor` on the device `wrong_on`.
double factor = 2;
Device wrong_on = Device::cpu;
Tensor doubled(const Arg& x) {
  const Tensor y = like(x);
  copy(y, x);
  multiply_by(y, 2);
  return record("doubled", {x}, y, keep(), [](const Tensor& dy) -> Grads {
    const Tensor dx = like(dy);
    copy(dx, dy);
    multiply_by(dx, dy.device() == wrong_on ? factor : 2);
    return {dx};
  });
}

std::string message_of_doubled(double by, Device device) {
  factor = by, wrong_on = device;
  return message_of([] { check_gradients(doubled, tensor_of(std::vector<float>{1, 2}, {2})); });
}

}  // namespace

TEST_CASE("check_gradients: a right gradient passes on every device that is there") {
  const auto checks = check_gradients([](const Arg& x, const Arg& y) { return x * y / (x * x + y * y); }, randn({3, 5}, 1), randn({5}, 2));
  REQUIRE(checks.size() == (available(Device::cuda) ? 3 : 2));
  CHECK(checks[0].device == Device::cpu);
  CHECK(checks[1].device == Device::cuda_emulated);
  for (const DeviceCheck& check : checks) {
    CHECK(check.result.worst <= kGradientTolerance);
    CHECK(check.result.least_norm > 0);
    CHECK(check.result.ops.size() == 5);
  }
}

TEST_CASE("check_gradients: integers stay what they are, dropout draws the same at every call") {
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
