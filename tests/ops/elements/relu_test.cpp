#include "ops/elements/activations.h"
#include "tests/ops/values.h"

using namespace ricci;

TEST_CASE("relu: max(x, 0), and the gradient where x is positive") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (int64_t n : {int64_t{1}, int64_t{7}, int64_t{1000}, int64_t{40001}}) {
      if (device == Device::cuda_emulated && n > 1000) continue;
      const Tensor x = drawn({n}, dtype, device, 1), dy = drawn({n}, dtype, device, 2);
      const Tensor dx = gradients_of([](const std::vector<Tensor>& in) { return relu(in[0]); }, {x}, dy)[0];
      Values expected = values_of(x), slope = values_of(dy);
      for (size_t i = 0; i < expected.size(); ++i) {
        slope[i] = expected[i] > 0 ? slope[i] : 0;
        expected[i] = expected[i] > 0 ? expected[i] : 0;
      }
      CHECK(error_of(relu(x), expected) == 0);
      CHECK(error_of(dx, slope) == 0);
    }
  });
}

TEST_CASE("relu: 0 and what is not finite") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    const Tensor x = tensor_of({NAN, HUGE_VAL, -HUGE_VAL, 0}, {4}, dtype, device);
    const Values y = values_of(relu(x));
    CHECK(std::isnan(y[0]));
    CHECK(y[1] == HUGE_VAL);
    CHECK(y[2] == 0);
    CHECK(y[3] == 0);
    const Tensor dy = tensor_of({1, 1, 1, 1}, {4}, dtype, device);
    const Values dx = values_of(gradients_of([](const std::vector<Tensor>& in) { return relu(in[0]); }, {x}, dy)[0]);
    CHECK(dx[1] == 1);
    CHECK(dx[2] == 0);
    CHECK(dx[3] == 0);
  });
}

TEST_CASE("relu2: the square of relu, rounded once, and its slope 2 relu(x)") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    Values given = values_of(drawn({1001}, dtype, Device::cpu, 1));
    given[0] = 0, given[1] = NAN, given[2] = -HUGE_VAL, given[3] = HUGE_VAL;
    const Tensor x = tensor_of(given, {7, 143}, dtype, device), dy = drawn({7, 143}, dtype, device, 2);
    const Values y = values_of(relu2(x)), slopes = values_of(dy);
    const Values dx = values_of(gradients_of([](const std::vector<Tensor>& in) { return relu2(in[0]); }, {x}, dy)[0]);
    CHECK(std::isnan(y[1]));
    CHECK(std::isnan(dx[1]));
    CHECK(y[2] == 0);
    CHECK(y[3] == HUGE_VAL);
    double worst = 0, worst_slope = 0;
    for (size_t i = 4; i < given.size(); ++i) {
      const double positive = given[i] > 0 ? given[i] : 0, slope = 2 * positive * slopes[i];
      raise_to(worst, std::abs(y[i] - positive * positive) - unit(dtype) * positive * positive);
      raise_to(worst_slope, std::abs(dx[i] - slope) - unit(dtype) * std::abs(slope));
    }
    CHECK(worst <= 0);
    CHECK(worst_slope <= 0);
  });
}

TEST_CASE("relu: any rank, no elements, integers are refused") {
  CHECK(relu(Tensor({0, 3})).shape() == Shape({0, 3}));
  CHECK(relu(tensor_of({-1}, {}, Dtype::f32, Device::cpu)).shape() == Shape({}));
  CHECK(message_of([] { relu(Tensor({3}, Dtype::i64)); }) == "relu: x[3] is i64, expected f32, f64 or bf16");
}
