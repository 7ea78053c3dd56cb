#include "ops/optimizers/gradient_norm.h"

#include "core/cpu/parallel.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

double norm_of(const std::vector<Tensor>& tensors) { return item(gradient_norm(tensors)); }

std::vector<Tensor> drawn_list(Device device) {
  std::vector<Tensor> tensors;
  uint64_t stream = 0;
  for (Shape shape : {Shape{}, Shape{3}, Shape{0}, Shape{16384}, Shape{3, 5, 7}, Shape{16385}, Shape{7, 5001}})
    for (Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f64}) tensors.push_back(drawn(shape, dtype, device, stream++));
  tensors.insert(tensors.begin() + 4, Tensor());
  return tensors;
}

}  // namespace

TEST_CASE("gradient norm: of all elements together, mixed dtypes") {
  on_every_device([](Device device) {
    const std::vector<Tensor> tensors = drawn_list(device);
    long double sum = 0;
    for (const Tensor& t : tensors)
      if (t)
        for (double v : values_of(t)) sum += static_cast<long double>(v) * v;
    const double expected = static_cast<double>(std::sqrt(sum));
    CHECK(std::abs(norm_of(tensors) - expected) <= 16384 * 0x1p-53 * expected);
  });
}

TEST_CASE("gradient norm: more tensors than one launch takes") {
  on_every_device([](Device device) {
    std::vector<Tensor> tensors;
    for (int i = 0; i < 400; ++i) tensors.push_back(tensor_of({3, 4}, {2}, Dtype::f32, device));
    CHECK(norm_of(tensors) == 100);
  });
}

TEST_CASE("gradient norm: the same bits for any number of threads") {
  const int before = thread_count();
  const std::vector<Tensor> tensors = drawn_list(Device::cpu);
  set_thread_count(1);
  const double one = norm_of(tensors);
  set_thread_count(3);
  CHECK(norm_of(tensors) == one);
  set_thread_count(before);
}

TEST_CASE("gradient norm: small and large numbers, NaN, nothing, messages") {
  on_every_device([](Device device) {
    for (double size : {1e30, 1e-30}) {  // squares beyond f32
      const double norm = norm_of({tensor_of({3 * size, 4 * size}, {2}, Dtype::f32, device)});
      CHECK(std::abs(norm - 5 * size) <= 2 * unit(Dtype::f32) * 5 * size);
    }
    CHECK(std::isnan(norm_of({tensor_of({1, NAN}, {2}, Dtype::f32, device)})));
    CHECK(norm_of({tensor_of({1, HUGE_VAL}, {2}, Dtype::f32, device)}) == HUGE_VAL);
  });
  CHECK(norm_of({}) == 0);
  CHECK(norm_of({Tensor(), Tensor({0})}) == 0);
  CHECK(message_of([] {
    norm_of({Tensor({2}), Tensor({2}, Dtype::f32, Device::cuda_emulated)});
  }) == "gradient_norm: a tensor on cpu and one on cuda_emulated");
  CHECK(message_of([] { norm_of({Tensor({2}, Dtype::i64)}); }) == "expected a floating-point tensor, got i64 [2]");
}

TEST_CASE("clip factor: clip / norm above clip, else 1; NaN where norm or loss is not finite") {
  on_every_device([](Device device) {
    const auto scalar = [&](double x) { return tensor_of({x}, {}, Dtype::f64, device); };
    const auto factor = [&](double norm, double clip, double loss) { return item(clip_factor(scalar(norm), clip, scalar(loss))); };
    CHECK(factor(3, 1, 5) == 1.0 / 3);
    CHECK(factor(1, 1, 5) == 1);
    CHECK(factor(0.5, 1, 5) == 1);
    CHECK(factor(1e9, 0, 5) == 1);
    CHECK(factor(0, 1, 0) == 1);
    for (double bad : {double{NAN}, HUGE_VAL, -HUGE_VAL}) {
      CHECK(std::isnan(factor(3, 1, bad)));
      CHECK(std::isnan(factor(bad, 1, 5)));
    }
  });
  CHECK(message_of([] { clip_factor(Tensor({}, Dtype::f64), 1, Tensor({}, Dtype::f64, Device::cuda_emulated)); }) ==
        "clip_factor: norm is f64 on cpu, loss f64 on cuda_emulated");
  CHECK(message_of([] { clip_factor(Tensor({1}, Dtype::f64), 1, Tensor({2}, Dtype::f64)); }) ==
        "clip_factor: f64 [2], expected an f64 scalar");
  CHECK(message_of([] { clip_factor(Tensor(Shape{}), 1, Tensor(Shape{})); }) == "clip_factor: f32 [], expected an f64 scalar");
}
