#include "ops/rows/layer_norm.h"

#include "core/dims.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

struct Case {
  Tensor x, branch, gain, bias;

  Case(Shape shape, bool residual, bool biased, Dtype dtype, Device device)
      : x(drawn(shape, dtype, device, 1)),
        branch(residual ? drawn(shape, dtype, device, 2) : Tensor()),
        gain(drawn({shape[-1]}, dtype, device, 3)),
        bias(biased ? drawn({shape[-1]}, dtype, device, 4) : Tensor()) {}

  std::vector<Tensor> inputs() const {
    std::vector<Tensor> all{x};
    for (const Tensor& t : {branch, gain, bias})
      if (t) all.push_back(t);
    return all;
  }
  // y, and with a residual the sum in front of it.
  std::vector<Tensor> outputs(const std::vector<Tensor>& in) const {
    const Tensor& g = in[branch ? 2 : 1];
    const Tensor b = bias ? in.back() : Tensor();
    if (!branch) return {layer_norm(in[0], g, b, 1e-5)};
    const auto [s, y] = residual_layer_norm(in[0], in[1], g, b, 1e-5);
    return {y, s};
  }
};

// The outputs, then the gradients of all inputs. The values of a Case of `dtype` are computed with in `precision`.
std::vector<Tensor> results(const Shape& shape, bool residual, bool biased, Dtype dtype, Dtype precision, Device device) {
  const Case c(shape, residual, biased, dtype, device);
  Tape tape;
  std::vector<Tensor> inputs, dys;
  for (const Tensor& t : c.inputs()) inputs.push_back(tape.watch(convert(t, precision)));
  std::vector<Tensor> all = c.outputs(inputs);
  for (size_t i = 0; i < all.size(); ++i) dys.push_back(convert(drawn(shape, dtype, device, 5 + i), precision));
  tape.backward(all, dys);
  for (Tensor& t : all) t = t.detached();
  for (const Tensor& t : inputs) all.push_back(tape.gradient_of(t));
  return all;
}

}  // namespace

TEST_CASE("layer norm: on a GPU as exact as on the CPU, rows of any width, with and without bias and residual") {
  for (const Shape& shape : {Shape{5, 7}, Shape{9, 8}, Shape{11, 264}, Shape{3, 3, 768}, Shape{8, 1032}, Shape{3, 2048}, Shape{2, 2056},
           Shape{70, 256}, Shape{41, 1024}, Shape{45, 1536}, Shape{67, 1288}})
    for (bool residual : {false, true})
      for (bool biased : {false, true})
        on_every_device_and_dtype([&](Device device, Dtype dtype) {
          if (device == Device::cpu) return;
          CAPTURE(show(shape));
          CAPTURE(residual);
          CAPTURE(biased);
          const auto got = results(shape, residual, biased, dtype, dtype, device);
          const auto on_cpu = results(shape, residual, biased, dtype, dtype, Device::cpu);
          const auto exact = results(shape, residual, biased, dtype, Dtype::f64, Device::cpu);
          REQUIRE(got.size() == exact.size());
          for (size_t i = 0; i < got.size(); ++i) {
            CAPTURE(i);
            const double n = static_cast<double>(shape[-1]);
            CHECK(error_of(got[i], values_of(exact[i])) <=
                  2 * error_of(on_cpu[i], values_of(exact[i])) + (dtype == Dtype::bf16 ? 0 : n * unit(dtype)));
          }
        });
}

TEST_CASE("layer norm: a sum is normalised as it is stored") {
  const Shape shape{5, 768};
  on_every_device([&](Device device) {
    const Case c(shape, true, true, Dtype::bf16, device);
    const std::vector<Tensor> both = c.outputs(c.inputs());
    CHECK(same_bits(both[0], layer_norm(both[1], c.gain, c.bias, 1e-5)));
  });
}
