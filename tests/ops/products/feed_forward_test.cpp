// The feed-forward map in one op against the three that it stands for.
#include "ops/elements/activations.h"
#include "ops/products/products.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

Tensor three_ops(const std::vector<Tensor>& in) { return linear(gelu_tanh(linear(in[0], in[1], in[2])), in[3], in[4]); }
Tensor one_op(const std::vector<Tensor>& in) { return feed_forward(in[0], in[1], in[2], in[3], in[4]); }

struct Results {
  Tensor y;
  std::vector<Tensor> gradients;
};

Results results_of(Tensor (*map)(const std::vector<Tensor>&), const std::vector<Tensor>& inputs, const Tensor& dy) {
  return {map(inputs), gradients_of(map, inputs, dy)};
}

// The largest difference, in units of the largest value.
double difference(const Tensor& a, const Tensor& b) {
  const Values x = values_of(a), y = values_of(b);
  REQUIRE(x.size() == y.size());
  double worst = 0, largest = 1e-30;
  for (size_t i = 0; i < x.size(); ++i) {
    raise_to(worst, std::abs(x[i] - y[i]));
    raise_to(largest, std::abs(y[i]));
  }
  return worst / largest;
}

}  // namespace

TEST_CASE("feed_forward is linear, gelu_tanh, linear, and so are its gradients") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (const int64_t f : {7, 16, 48})
      for (const Shape& shape : {Shape{2, 3, 5}, Shape{1, 33}, Shape{0, 3}, Shape{3, 0}}) {
        const int64_t d = shape[-1], e = 6;
        Shape out = shape;
        out.set(-1, e);
        const std::vector<Tensor> in = {drawn(shape, dtype, device, 1), drawn({f, d}, dtype, device, 2), drawn({f}, dtype, device, 3),
            drawn({e, f}, dtype, device, 4), drawn({e}, dtype, device, 5)};
        const Tensor dy = drawn(out, dtype, device, 6);
        const Results expected = results_of(three_ops, in, dy), got = results_of(one_op, in, dy);
        CAPTURE(f);
        CHECK(got.y.shape() == out);
        const double bound = 40 * unit(dtype);  // bf16 rounds the slope once more in three ops
        CHECK(difference(got.y, expected.y) <= bound);
        for (size_t i = 0; i < in.size(); ++i) CHECK(difference(got.gradients[i], expected.gradients[i]) <= bound);
      }
  });
}

TEST_CASE("feed_forward has the bits of the three ops on the CPU, in f32") {
  const std::vector<Tensor> in = {drawn({40, 24}, Dtype::f32, Device::cpu, 1), drawn({96, 24}, Dtype::f32, Device::cpu, 2),
      drawn({96}, Dtype::f32, Device::cpu, 3), drawn({24, 96}, Dtype::f32, Device::cpu, 4), drawn({24}, Dtype::f32, Device::cpu, 5)};
  const Tensor dy = drawn({40, 24}, Dtype::f32, Device::cpu, 6);
  const Results expected = results_of(three_ops, in, dy), got = results_of(one_op, in, dy);
  CHECK(same_bits(got.y, expected.y));
  for (size_t i = 0; i < in.size(); ++i) CHECK(same_bits(got.gradients[i], expected.gradients[i]));
}

TEST_CASE("errors of feed_forward name the values") {
  const Tensor x({5, 3}), w({7, 3}), bias({7}), v({4, 7}), out_bias({4});
  CHECK(message_of([&] {
    feed_forward(x, w, bias, Tensor({4, 6}), out_bias);
  }) == "feed_forward: index f is 7 in w_fd[7 3] but 6 in v_ef[4 6]");
  CHECK(message_of([&] { feed_forward(x, w, Tensor(), v, out_bias); }) == "feed_forward: bias_f is empty");
}
