#include "ops/rows/cross_entropy.h"

#include "tests/ops/values.h"

using namespace ricci;

TEST_CASE("cross-entropy: its definition, on every device and dtype, with rows that do not count") {
  for (int64_t v : {1, 7, 301})
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      const Tensor logits = drawn({5, v}, dtype, device, 3);
      const std::vector<int64_t> targets{0, -1, v - 1, v / 2, -1};
      const Values l = values_of(logits);
      double sum = 0, size = 1;
      Values dl(l.size());
      for (size_t r = 0; r < 5; ++r) {
        if (targets[r] < 0) continue;
        double total = 0;
        for (size_t i = 0; i < static_cast<size_t>(v); ++i) total += std::exp(l[r * static_cast<size_t>(v) + i]);
        const double target = l[r * static_cast<size_t>(v) + static_cast<size_t>(targets[r])];
        sum += std::log(total) - target, size += std::abs(std::log(total)) + std::abs(target);
        for (size_t i = 0; i < static_cast<size_t>(v); ++i)
          dl[r * static_cast<size_t>(v) + i] =
              0.5 * (std::exp(l[r * static_cast<size_t>(v) + i]) / total - (static_cast<int64_t>(i) == targets[r])) / 3;
      }
      const Tensor target_r = ids_of(targets, {5}, device);
      const double bound = (16 + static_cast<double>(v)) * sum_unit(dtype);
      CHECK(std::abs(item(cross_entropy(logits, target_r)) - sum / 3) <= bound * size);
      const Tensor dloss = tensor_of({0.5}, {}, Dtype::f64, device);
      const Tensor got = gradients_of([&](const std::vector<Tensor>& in) { return cross_entropy(in[0], target_r); }, {logits}, dloss)[0];
      CHECK(error_of(got, dl) <= unit(dtype) + bound);
    });
}

TEST_CASE("cross-entropy: no row that counts is 0, and large logits do not overflow") {
  on_every_device([](Device device) {
    CHECK(item(cross_entropy(drawn({2, 3}, Dtype::f32, device, 1), ids_of({-1, -1}, {2}, device))) == 0);
    CHECK(item(cross_entropy(tensor_of({1000, 0, -1000}, {1, 3}, Dtype::f32, device), ids_of({0}, {1}, device))) == 0);
    if (device != Device::cpu) CHECK(std::isnan(item(cross_entropy(drawn({1, 3}, Dtype::f32, device, 1), ids_of({-2}, {1}, device)))));
  });
  CHECK(message_of([] {
    cross_entropy(drawn({2, 3}, Dtype::f32, Device::cpu, 1), ids_of({0, -2}, {2}, Device::cpu));
  }) == "cross_entropy: target -2 at row 1 is outside the 3 classes");
  CHECK(message_of([] {
    cross_entropy(drawn({2, 3}, Dtype::f32, Device::cpu, 1), ids_of({0}, {1}, Device::cpu));
  }) == "cross_entropy: index r is 2 in logits_rv[2 3] but 1 in targets_r[1]");
}
