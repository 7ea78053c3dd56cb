#include "ops/elements/activations.h"
#include "tests/ops/values.h"

using namespace ricci;

TEST_CASE("sigmoid: 1 / (1 + exp(-x)), and its slope") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (int64_t n : {int64_t{1}, int64_t{7}, int64_t{1000}, int64_t{40001}}) {
      if (device == Device::cuda_emulated && n > 1000) continue;
      const Tensor x = drawn({n}, dtype, device, 1), dy = drawn({n}, dtype, device, 2);
      const Tensor dx = gradients_of([](const std::vector<Tensor>& in) { return sigmoid(in[0]); }, {x}, dy)[0];
      Values expected = values_of(x), slope = values_of(dy);
      for (size_t i = 0; i < expected.size(); ++i) {
        expected[i] = 1 / (1 + std::exp(-expected[i]));
        slope[i] *= expected[i] * (1 - expected[i]);
      }
      CHECK(error_of(sigmoid(x), expected) <= 4 * unit(dtype));
      CHECK(error_of(dx, slope) <= 8 * unit(dtype));
    }
  });
}

TEST_CASE("sigmoid: far from 0 and what is not finite") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    const Values y = values_of(sigmoid(tensor_of({NAN, HUGE_VAL, -HUGE_VAL, 1000, -1000, 0}, {6}, dtype, device)));
    CHECK(std::isnan(y[0]));
    CHECK(y[1] == 1);
    CHECK(y[2] == 0);
    CHECK(y[3] == 1);
    CHECK(y[4] == 0);
    CHECK(y[5] == 0.5);
  });
}
