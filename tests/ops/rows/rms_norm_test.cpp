// rms_norm and residual_rms_norm against their formulas in f64.
#include "ops/rows/rms_norm.h"

#include "core/cpu/parallel.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

struct Naive {
  Values y, dx, dgain;
  Values gain_size;  // sums of the absolute values of the same terms

  Naive(const Values& x, const Values& gain, const Values& dy, double eps) : dgain(gain.size()), gain_size(gain.size()) {
    const size_t d = gain.size();
    for (size_t first = 0; first < x.size(); first += d) {
      double square = 0, product = 0;
      for (size_t i = 0; i < d; ++i) {
        square += x[first + i] * x[first + i] / static_cast<double>(d);
        product += gain[i] * dy[first + i] * x[first + i] / static_cast<double>(d);
      }
      const double s = std::pow(square + eps, -0.5);
      for (size_t i = 0; i < d; ++i) {
        y.push_back(gain[i] * x[first + i] * s);
        dx.push_back(s * gain[i] * dy[first + i] - x[first + i] * s * s * s * product);
        dgain[i] += dy[first + i] * x[first + i] * s;
        gain_size[i] += std::abs(dy[first + i] * x[first + i] * s);
      }
    }
  }
};

// Values around 3, so that a mean that is subtracted shows.
Tensor shifted(const Shape& shape, Dtype dtype, Device device, uint64_t stream) {
  Values values = values_of(drawn(shape, dtype, Device::cpu, stream));
  for (double& v : values) v += 3;
  return tensor_of(values, shape, dtype, device);
}

struct Sizes {
  int64_t rows, width;
};
const Sizes sizes[] = {{1, 2}, {15, 7}, {3, 64}, {2, 301}, {70, 5}, {5, 1032}, {0, 3}};

void check(const Sizes& s, double eps, Device device, Dtype dtype) {
  CAPTURE(s.rows);
  CAPTURE(s.width);
  const Shape shape{s.rows, s.width};
  const Tensor x = shifted(shape, dtype, device, 1), branch = drawn(shape, dtype, device, 2), dy = drawn(shape, dtype, device, 3),
               gain = drawn({s.width}, dtype, device, 4);
  const Naive naive(values_of(x), values_of(gain), values_of(dy), eps);
  const double sums = static_cast<double>(4 * s.width + 60) * sum_unit(dtype), bound = 2 * unit(dtype) + sums;
  CHECK(error_of(rms_norm(x, gain, eps), naive.y) <= unit(dtype) + sums);
  const auto grads = gradients_of([&](const std::vector<Tensor>& in) { return rms_norm(in[0], in[1], eps); }, {x, gain}, dy);
  CHECK(error_of(grads[0], naive.dx) <= bound);
  CHECK(error_of(grads[1], naive.dgain, naive.gain_size) <= bound + static_cast<double>(s.rows) * sum_unit(dtype));

  const auto [sum, y] = residual_rms_norm(x, branch, gain, eps);
  Values added = values_of(x);
  const Values branched = values_of(branch);
  for (size_t i = 0; i < added.size(); ++i) added[i] += branched[i];
  CHECK(error_of(sum, added) <= unit(dtype));
  CHECK(same_bits(y, rms_norm(sum, gain, eps)));  // it normalises the sum as it is stored
}

}  // namespace

TEST_CASE("rms norm: values and gradients are the formula's, with little and with much eps") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (const Sizes& s : sizes)
      for (double eps : {1e-5, 0.5}) check(s, eps, device, dtype);
  });
}

TEST_CASE("residual rms norm: gradients of both outputs add up, and are those of both inputs") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (int64_t width : {33, 64}) {
      const Shape shape{9, width};
      const Tensor x = drawn(shape, dtype, device, 1), branch = drawn(shape, dtype, device, 2), gain = drawn({width}, dtype, device, 3),
                   dsum = drawn(shape, dtype, device, 4), dy = drawn(shape, dtype, device, 5);
      Tape tape;
      const Tensor wx = tape.watch(x), wbranch = tape.watch(branch), wgain = tape.watch(gain);
      const auto [sum, y] = residual_rms_norm(wx, wbranch, wgain);
      const Naive naive(values_of(sum), values_of(gain), values_of(dy), 1e-5);
      tape.backward({sum, y}, {dsum, dy});
      Values expected = naive.dx;
      const Values from_sum = values_of(dsum);
      for (size_t i = 0; i < expected.size(); ++i) expected[i] += from_sum[i];
      const double bound = 2 * unit(dtype) + 300 * sum_unit(dtype);
      CHECK(error_of(tape.gradient_of(wx), expected) <= bound);
      CHECK(same_bits(tape.gradient_of(wx), tape.gradient_of(wbranch)));
      CHECK(error_of(tape.gradient_of(wgain), naive.dgain, naive.gain_size) <= bound);
    }
  });
}

TEST_CASE("rms norm: the same bits for any number of threads, a row of zeros, what is not finite") {
  const int before = thread_count();
  const Tensor x = drawn({211, 130}, Dtype::f32, Device::cpu, 1), gain = drawn({130}, Dtype::f32, Device::cpu, 2);
  const auto norm = [](const std::vector<Tensor>& in) { return rms_norm(in[0], in[1]); };
  std::vector<Tensor> first;
  for (int threads : {1, 2, 5}) {
    set_thread_count(threads);
    std::vector<Tensor> now = gradients_of(norm, {x, gain}, x);
    now.push_back(norm({x, gain}));
    if (first.empty()) first = now;
    for (size_t i = 0; i < now.size(); ++i) CHECK(same_bits(first[i], now[i]));
  }
  set_thread_count(before);
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    const Tensor ones = tensor_of({1, 1, 1}, {3}, dtype, device);
    CHECK(values_of(rms_norm(tensor_of({0, 0, 0}, {1, 3}, dtype, device), ones)) == Values{0, 0, 0});
    CHECK(std::isnan(values_of(rms_norm(tensor_of({1, NAN, 0}, {1, 3}, dtype, device), ones))[0]));
  });
}

TEST_CASE("rms norm: messages") {
  const Tensor x({2, 3}), gain({3});
  CHECK(message_of([&] { rms_norm(x, Tensor({4})); }) == "rms_norm: index d is 3 in x_rd[2 3] but 4 in gain_d[4]");
  CHECK(message_of([&] { rms_norm(x, Tensor()); }) == "rms_norm: gain_d is empty");
  CHECK(message_of([&] { rms_norm(x, Tensor({3}, Dtype::bf16)); }) == "rms_norm: x_rd is f32 on cpu, gain_d bf16 on cpu");
  CHECK(message_of([&] {
    residual_rms_norm(x, Tensor({3, 3}), gain);
  }) == "residual_rms_norm: index r is 2 in x_rd[2 3] but 3 in branch_rd[3 3]");
}
