#include "ops/embedding/embedding.h"
#include "tests/ops/values.h"

using namespace ricci;

TEST_CASE("sinusoidal positions are the formula, of odd widths too") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (int64_t width : {1, 2, 7, 64}) {
      const Tensor pe = sinusoidal_positions(33, width, dtype, device);
      CHECK(pe.shape() == Shape({33, width}));
      CHECK(pe.dtype() == dtype);
      CHECK(pe.device() == device);
      Values expected;
      for (int64_t t = 0; t < 33; ++t) {
        for (int64_t d = 0; d < width; ++d) {
          const double angle = static_cast<double>(t) / std::pow(10000.0, 2.0 * static_cast<double>(d / 2) / static_cast<double>(width));
          expected.push_back(d % 2 ? std::cos(angle) : std::sin(angle));
        }
      }
      CHECK(error_of(pe, expected) <= unit(dtype) + 64 * 0x1p-53);  // an angle of up to 32, rounded a few times
    }
  });
}

TEST_CASE("sinusoidal positions: values known from the paper's formula") {
  const Values pe = values_of(sinusoidal_positions(2, 4, Dtype::f64, Device::cpu));
  const Values expected{0, 1, 0, 1, std::sin(1.0), std::cos(1.0), std::sin(0.01), std::cos(0.01)};
  for (size_t i = 0; i < expected.size(); ++i) CHECK(std::abs(pe[i] - expected[i]) <= 0x1p-52);
  CHECK(sinusoidal_positions(0, 4, Dtype::f32, Device::cpu).size() == 0);
}
