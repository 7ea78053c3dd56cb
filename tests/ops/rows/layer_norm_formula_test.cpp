// layer_norm and residual_layer_norm against their formulas in f64.
#include "core/cpu/parallel.h"
#include "ops/rows/layer_norm.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

struct Naive {
  Values y, dx, dgain, dbias;
  Values gain_size, bias_size;  // sums of the absolute values of the same terms

  Naive(const Values& x, const Values& gain, const Values& bias, const Values& dy, double eps)
      : dgain(gain.size()), dbias(gain.size()), gain_size(gain.size()), bias_size(gain.size()) {
    const size_t d = gain.size();
    const double width = static_cast<double>(d);
    for (size_t first = 0; first < x.size(); first += d) {
      double mean = 0, variance = 0, mean_g = 0, mean_gn = 0;
      for (size_t i = 0; i < d; ++i) mean += x[first + i] / width;
      for (size_t i = 0; i < d; ++i) variance += (x[first + i] - mean) * (x[first + i] - mean) / width;
      const double rstd = 1 / std::sqrt(variance + eps);
      const auto n = [&](size_t i) { return (x[first + i] - mean) * rstd; };
      const auto g = [&](size_t i) { return gain[i] * dy[first + i]; };
      for (size_t i = 0; i < d; ++i) mean_g += g(i) / width, mean_gn += g(i) * n(i) / width;
      for (size_t i = 0; i < d; ++i) {
        y.push_back(n(i) * gain[i] + bias[i]);
        dx.push_back(rstd * (g(i) - mean_g - n(i) * mean_gn));
        dgain[i] += dy[first + i] * n(i), gain_size[i] += std::abs(dy[first + i]) * (1 + std::abs(n(i)));
        dbias[i] += dy[first + i], bias_size[i] += std::abs(dy[first + i]);
      }
    }
  }
};

// Values around 3, so that a mean that is forgotten shows.
Tensor shifted(const Shape& shape, Dtype dtype, Device device, uint64_t stream) {
  Values values = values_of(drawn(shape, dtype, Device::cpu, stream));
  for (double& v : values) v += 3;
  return tensor_of(values, shape, dtype, device);
}

struct Sizes {
  int64_t rows, width;
};
const Sizes sizes[] = {{1, 1}, {1, 2}, {15, 7}, {3, 64}, {2, 301}, {70, 5}, {0, 3}};

void check(const Sizes& s, double eps, Device device, Dtype dtype) {
  CAPTURE(s.rows);
  CAPTURE(s.width);
  const Shape shape{s.rows, s.width}, vector{s.width};
  const Tensor x = shifted(shape, dtype, device, 1), branch = drawn(shape, dtype, device, 2), dy = drawn(shape, dtype, device, 3);
  const Tensor gain = drawn(vector, dtype, device, 4), bias = drawn(vector, dtype, device, 5);
  const double sums = static_cast<double>(4 * s.width + 60) * sum_unit(dtype), bound = 2 * unit(dtype) + sums;
  const Naive naive(values_of(x), values_of(gain), values_of(bias), values_of(dy), eps);
  CHECK(error_of(layer_norm(x, gain, bias, eps), naive.y) <= bound);
  const auto norm = [&](const std::vector<Tensor>& in) { return layer_norm(in[0], in[1], in[2], eps); };
  const auto grads = gradients_of(norm, {x, gain, bias}, dy);
  const double columns = 2 * unit(dtype) + (static_cast<double>(s.rows) + 60) * sum_unit(dtype) + sums;
  if (s.width > 2) CHECK(error_of(grads[0], naive.dx) <= bound);  // else dx is what rounding leaves of 0
  CHECK(error_of(grads[1], naive.dgain, naive.gain_size) <= columns);
  CHECK(error_of(grads[2], naive.dbias, naive.bias_size) <= columns);

  const auto [sum, y] = residual_layer_norm(x, branch, gain, bias, eps);
  Values added = values_of(x);
  const Values branched = values_of(branch);
  for (size_t i = 0; i < added.size(); ++i) added[i] += branched[i];
  CHECK(error_of(sum, added) <= unit(dtype));
  CHECK(same_bits(y, layer_norm(sum, gain, bias, eps)));  // it normalises the sum as it is stored
}

}  // namespace

TEST_CASE("layer norm: values and gradients are the formula's, with little and with much eps") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (const Sizes& s : sizes)
      for (double eps : {1e-5, 0.5}) check(s, eps, device, dtype);
  });
}

TEST_CASE("residual layer norm: gradients of both outputs add up, and are those of both inputs") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    const Shape shape{9, 33}, vector{33};
    const Tensor x = drawn(shape, dtype, device, 1), branch = drawn(shape, dtype, device, 2), gain = drawn(vector, dtype, device, 3);
    const Tensor ds = drawn(shape, dtype, device, 4), dy = drawn(shape, dtype, device, 5);
    Tape tape;
    const Tensor wx = tape.watch(x), wbranch = tape.watch(branch), wgain = tape.watch(gain);
    const auto [s, y] = residual_layer_norm(wx, wbranch, wgain, Tensor());
    const Tensor sum = s.detached();
    tape.backward({s, y}, {ds, dy});
    const Naive naive(values_of(sum), values_of(gain), Values(33, 0), values_of(dy), 1e-5);
    Values expected = naive.dx;
    const Values dsv = values_of(ds);
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += dsv[i];
    const double bound = 2 * unit(dtype) + 200 * sum_unit(dtype);
    CHECK(error_of(tape.gradient_of(wx), expected) <= bound);
    CHECK(same_bits(tape.gradient_of(wx), tape.gradient_of(wbranch)));
    CHECK(error_of(tape.gradient_of(wgain), naive.dgain, naive.gain_size) <= bound);
  });
}

TEST_CASE("layer norm: the same bits for any number of threads") {
  const int before = thread_count();
  std::vector<Tensor> first;
  for (int threads : {1, 2, 5}) {
    set_thread_count(threads);
    const Tensor x = drawn({211, 130}, Dtype::f32, Device::cpu, 1), dy = drawn({211, 130}, Dtype::f32, Device::cpu, 2);
    const auto norm = [](const std::vector<Tensor>& in) { return layer_norm(in[0], in[1], in[2]); };
    auto now = gradients_of(norm, {x, drawn({130}, Dtype::f32, Device::cpu, 3), drawn({130}, Dtype::f32, Device::cpu, 4)}, dy);
    now.push_back(layer_norm(x, drawn({130}, Dtype::f32, Device::cpu, 3), Tensor()));
    if (first.empty()) first = now;
    for (size_t i = 0; i < now.size(); ++i) CHECK(same_bits(first[i], now[i]));
  }
  set_thread_count(before);
}

TEST_CASE("layer norm: messages") {
  CHECK(message_of([] {
    layer_norm(Tensor({2, 3}), Tensor({4}), Tensor());
  }) == "layer_norm: index d is 3 in x_rd[2 3] but 4 in gain_d[4]");
  CHECK(message_of([] {
    layer_norm(Tensor({2, 3}), Tensor({3}), Tensor({2}));
  }) == "layer_norm: index d is 3 in x_rd[2 3] but 2 in bias_d[2]");
  CHECK(message_of([] {
    residual_layer_norm(Tensor({2, 3}), Tensor({2, 4}), Tensor({3}), Tensor());
  }) == "residual_layer_norm: index d is 3 in x_rd[2 3] but 4 in branch_rd[2 4]");
  const Tensor gain({8});
  CHECK(message_of([&] {
    residual_layer_norm(Tensor({4, 8}), Tensor({2, 8}), gain, Tensor());
  }) == "residual_layer_norm: index r is 4 in x_rd[4 8] but 2 in branch_rd[2 8]");
  CHECK(message_of([&] {
    residual_layer_norm(Tensor({4, 2, 8}), Tensor({2, 4, 8}), gain, Tensor());
  }) == "residual_layer_norm: x_rd[4 2 8] and branch_rd[2 4 8] differ in the indices merged into r");
  CHECK(message_of([&] {
    residual_layer_norm(Tensor({2, 8}), Tensor({2, 8}, Dtype::bf16), gain, Tensor());
  }) == "residual_layer_norm: x_rd is f32 on cpu, branch_rd bf16 on cpu");
  CHECK(message_of([&] {
    layer_norm(Tensor({2, 8}, Dtype::bf16), gain, Tensor());
  }) == "layer_norm: x_rd is bf16 on cpu, gain_d f32 on cpu");
}
