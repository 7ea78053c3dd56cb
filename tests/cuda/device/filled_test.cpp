#include "cuda/device/device.h"
#include "tests/ops/values.h"

using namespace ricci;

TEST_CASE("randn: standard normal numbers, which follow from the shape and the seed alone") {
  const Values values = values_of(randn({100, 100}, 1));
  double sum = 0, squares = 0;
  for (const double value : values) sum += value, squares += value * value;
  CHECK(std::abs(sum / 1e4) < 0.04);  // four standard deviations
  CHECK(std::abs(squares / 1e4 - 1) < 0.06);
  CHECK(values_of(randn({100, 100}, 1)) == values);
  CHECK(values_of(randn({100, 100}, 1, Dtype::f32, Device::cuda_emulated)) == values);
  CHECK(values_of(randn({100, 100}, 2)) != values);
  const Tensor wide = randn({100, 100}, 1, Dtype::f64);
  CHECK(values_of(convert(wide, Dtype::f32)) == values);
  CHECK(values_of(randn({100, 100}, 1, Dtype::bf16)) == values_of(convert(wide, Dtype::bf16)));
}

TEST_CASE("randn: integers cannot be drawn") {
  CHECK(message_of([] { randn({2}, 1, Dtype::i64); }) == "randn: i64 is no floating-point dtype, expected f32, f64 or bf16");
}

TEST_CASE("tensor_of: the values, row by row, with the dtype of their type") {
  const Tensor x = tensor_of(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3}, Device::cuda_emulated);
  CHECK(x.dtype() == Dtype::f32);
  CHECK(x.device() == Device::cuda_emulated);
  CHECK(x.shape() == Shape{2, 3});
  CHECK(item(x, 5) == 6);
  CHECK(tensor_of(std::vector<double>{0.1}, {}).dtype() == Dtype::f64);
  CHECK(item(tensor_of(std::vector<int64_t>{1, -1}, {2}), 1) == -1);
  CHECK(message_of([] { tensor_of(std::vector<float>{1, 2, 3}, {2, 2}); }) == "tensor_of: 3 values for shape [2 2]");
}
