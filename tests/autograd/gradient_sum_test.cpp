// Gradients of many parts: in bf16 their sum is rounded once.
#include "autograd/gradient_sum.h"

#include "tests/ops/values.h"

using namespace ricci;

TEST_CASE("gradient sum: bf16 gradients are added in f32 and rounded once") {
  on_every_device([](Device device) {
    constexpr int kParts = 64;
    Parameter narrow{drawn({9}, Dtype::bf16, device, 1)};
    GradientSum sum({&narrow});
    Values expected(9, 0), sizes(9, 0);
    for (int part = 0; part < kParts; ++part) {
      // Values with a common part: += in bf16 would lose the late ones.
      const Tensor grad = drawn({9}, Dtype::bf16, device, static_cast<uint64_t>(2 + part));
      add_to(grad, tensor_of(Values(9, 2.0), {9}, Dtype::bf16, device));
      const Values terms = values_of(grad);
      for (size_t i = 0; i < 9; ++i) expected[i] += terms[i], sizes[i] += std::abs(terms[i]);
      narrow.grad = grad;
      sum.take();
      CHECK(!narrow.grad);
    }
    const auto held = [&sum] {
      int64_t bytes = 0;
      sum.each_held([&](const Tensor& t, HeldFor use) { bytes += t && use == HeldFor::gradients ? t.bytes() : 0; });
      return bytes;
    };
    CHECK(held() == 9 * 4);
    sum.give();
    CHECK(held() == 0);
    CHECK(narrow.grad.dtype() == Dtype::bf16);
    const Values got = values_of(narrow.grad);
    for (size_t i = 0; i < 9; ++i)
      CHECK(std::abs(got[i] - expected[i]) <= unit(Dtype::bf16) * std::abs(expected[i]) + kParts * unit(Dtype::f32) * sizes[i]);
    sum.give();  // the sums are forgotten, the gradient is not
    CHECK(values_of(narrow.grad) == got);
  });
}

TEST_CASE("gradient sum: gradients of other dtypes, and parameters that none reached, stay as they are") {
  Parameter wide{drawn({3}, Dtype::f32, Device::cpu, 1)}, unreached{drawn({3}, Dtype::bf16, Device::cpu, 2)};
  wide.grad = drawn({3}, Dtype::f32, Device::cpu, 3);
  const Values before = values_of(wide.grad);
  GradientSum sum({&wide, &unreached});
  sum.take();
  CHECK(values_of(wide.grad) == before);
  sum.give();
  CHECK(values_of(wide.grad) == before);
  CHECK(!unreached.grad);
}
