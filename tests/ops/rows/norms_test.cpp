// Layer norm, rms norm and both after a residual, against their formulas in f64.
#include "core/dims.h"
#include "ops/rows/layer_norm.h"
#include "ops/rows/rms_norm.h"
#include "tests/ops/values.h"
#include "tests/skip.h"

using namespace ricci;

namespace {

enum class Kind { layer, rms };

// in: x, gain and, for a layer norm, bias.
Tensor norm(Kind kind, const std::vector<Tensor>& in, double eps = 1e-5) {
  return kind == Kind::layer ? layer_norm(in[0], in[1], in[2], eps) : rms_norm(in[0], in[1], eps);
}
// in: x, branch, gain and, for a layer norm, bias.
std::array<Tensor, 2> residual_norm(Kind kind, const std::vector<Tensor>& in, double eps = 1e-5) {
  return kind == Kind::layer ? residual_layer_norm(in[0], in[1], in[2], in[3], eps) : residual_rms_norm(in[0], in[1], in[2], eps);
}

struct Naive {
  Values y, dx, dgain, dbias;
  Values gain_size, bias_size;  // sums of the absolute values of the same terms

  Naive(Kind kind, const Values& x, const Values& gain, const Values& bias, const Values& dy, double eps)
      : dgain(gain.size()), dbias(gain.size()), gain_size(gain.size()), bias_size(gain.size()) {
    const size_t d = gain.size();
    const double width = static_cast<double>(d);
    for (size_t first = 0; first < x.size(); first += d) {
      double mean = 0, variance = 0, mean_g = 0, mean_gn = 0;
      for (size_t i = 0; i < d && kind == Kind::layer; ++i) mean += x[first + i] / width;
      for (size_t i = 0; i < d; ++i) variance += (x[first + i] - mean) * (x[first + i] - mean) / width;
      const double rstd = 1 / std::sqrt(variance + eps);
      const auto n = [&](size_t i) { return (x[first + i] - mean) * rstd; };
      const auto g = [&](size_t i) { return gain[i] * dy[first + i]; };
      for (size_t i = 0; i < d; ++i) mean_gn += g(i) * n(i) / width;
      for (size_t i = 0; i < d && kind == Kind::layer; ++i) mean_g += g(i) / width;
      for (size_t i = 0; i < d; ++i) {
        y.push_back(n(i) * gain[i] + bias[i]);
        dx.push_back(rstd * (g(i) - mean_g - n(i) * mean_gn));
        dgain[i] += dy[first + i] * n(i), gain_size[i] += std::abs(dy[first + i]) * (kind == Kind::layer) + std::abs(dy[first + i] * n(i));
        dbias[i] += dy[first + i], bias_size[i] += std::abs(dy[first + i]);
      }
    }
  }
};

// Values around 3: a mean that is wrongly left out or subtracted shows.
Tensor shifted(const Shape& shape, Dtype dtype, Device device, uint64_t stream) {
  Values values = values_of(drawn(shape, dtype, Device::cpu, stream));
  for (double& v : values) v += 3;
  return tensor_of(values, shape, dtype, device);
}

void check(Kind kind, int64_t rows, int64_t width, double eps, Device device, Dtype dtype) {
  INFO("rows ", rows, ", width ", width);
  const Shape shape{rows, width}, vector{width};
  const Tensor x = shifted(shape, dtype, device, 1), branch = drawn(shape, dtype, device, 2), dy = drawn(shape, dtype, device, 3);
  const Tensor gain = drawn(vector, dtype, device, 4), bias = drawn(vector, dtype, device, 5);
  const bool is_layer = kind == Kind::layer;
  const double sums = static_cast<double>(4 * width + 60) * sum_unit(dtype), bound = 2 * unit(dtype) + sums;
  const Naive naive(
      kind, values_of(x), values_of(gain), is_layer ? values_of(bias) : Values(static_cast<size_t>(width)), values_of(dy), eps);
  CHECK(error_of(norm(kind, {x, gain, bias}, eps), naive.y) <= (is_layer ? bound : bound - unit(dtype)));
  const std::vector<Tensor> inputs = is_layer ? std::vector{x, gain, bias} : std::vector{x, gain};
  const auto grads = gradients_of([&](const std::vector<Tensor>& in) { return norm(kind, in, eps); }, inputs, dy);
  const double columns = bound + (static_cast<double>(rows) + 60) * sum_unit(dtype);
  if (!is_layer || width > 2) CHECK(error_of(grads[0], naive.dx) <= bound);  // else dx is 0 but for rounding
  CHECK(error_of(grads[1], naive.dgain, naive.gain_size) <= columns);
  if (is_layer) CHECK(error_of(grads[2], naive.dbias, naive.bias_size) <= columns);

  const auto [sum, y] = residual_norm(kind, {x, branch, gain, bias}, eps);
  Values added = values_of(x);
  const Values branched = values_of(branch);
  for (size_t i = 0; i < added.size(); ++i) added[i] += branched[i];
  CHECK(error_of(sum, added) <= unit(dtype));
  CHECK(same_bits(y, norm(kind, {sum, gain, bias}, eps)));  // it normalises the stored sum
}

// y of a layer norm, with a residual also the sum before it, then the gradients of all inputs, for random values of `dtype`, computed in
// `precision`.
std::vector<Tensor> results(const Shape& shape, bool residual, bool biased, Dtype dtype, Dtype precision, Device device) {
  const Shape vector{shape[-1]};
  Tape tape;
  const auto input = [&](const Shape& of, uint64_t stream) { return tape.watch(convert(drawn(of, dtype, device, stream), precision)); };
  std::vector<Tensor> in{input(shape, 1), input(vector, 3)}, dys;
  if (biased) in.push_back(input(vector, 4));
  if (residual) in.push_back(input(shape, 2));
  const Tensor bias = biased ? in[2] : Tensor();
  std::vector<Tensor> all;
  if (residual) {
    const auto [s, y] = residual_layer_norm(in[0], in.back(), in[1], bias, 1e-5);
    all = {y, s};
  } else {
    all = {layer_norm(in[0], in[1], bias, 1e-5)};
  }
  for (size_t i = 0; i < all.size(); ++i) dys.push_back(convert(drawn(shape, dtype, device, 5 + i), precision));
  tape.backward(all, dys);
  for (Tensor& t : all) t = t.detached();
  for (const Tensor& t : in) all.push_back(tape.gradient_of(t));
  return all;
}

}  // namespace

TEST_CASE("norms: values and gradients are the formula's, with little and with much eps") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (Kind kind : {Kind::layer, Kind::rms})
      for (const auto& [rows, width] :
          {std::pair<int64_t, int64_t>{1, 1}, {1, 2}, {15, 7}, {3, 64}, {2, 301}, {70, 5}, {2, 1032}, {0, 3}}) {
        if (kind == Kind::rms && width == 1) continue;  // dx is 0 but for rounding
        for (double eps : {1e-5, 0.5}) check(kind, rows, width, eps, device, dtype);
      }
  });
}

TEST_CASE("residual norms: gradients of both outputs add up, and are those of both inputs") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (Kind kind : {Kind::layer, Kind::rms})
      for (int64_t width : {33, 64}) {
        const Shape shape{9, width};
        const Tensor x = drawn(shape, dtype, device, 1), branch = drawn(shape, dtype, device, 2), gain = drawn({width}, dtype, device, 3);
        const Tensor ds = drawn(shape, dtype, device, 4), dy = drawn(shape, dtype, device, 5);
        Tape tape;
        const Tensor wx = tape.watch(x), wbranch = tape.watch(branch), wgain = tape.watch(gain);
        const auto [s, y] = residual_norm(kind, {wx, wbranch, wgain, Tensor()});
        const Naive naive(kind, values_of(s), values_of(gain), Values(static_cast<size_t>(width)), values_of(dy), 1e-5);
        tape.backward({s, y}, {ds, dy});
        Values expected = naive.dx;
        const Values dsv = values_of(ds);
        for (size_t i = 0; i < expected.size(); ++i) expected[i] += dsv[i];
        const double bound = 2 * unit(dtype) + 300 * sum_unit(dtype);
        CHECK(error_of(tape.gradient_of(wx), expected) <= bound);
        CHECK(same_bits(tape.gradient_of(wx), tape.gradient_of(wbranch)));
        CHECK(error_of(tape.gradient_of(wgain), naive.dgain, naive.gain_size) <= bound);
      }
  });
}

// Rows of bf16 in packs of 16 bytes have kernels for 1, 2, 3, 4, 6 and 8 times 256 elements; a block sums 32 rows or more.
TEST_CASE("layer norm: on a GPU as exact as on the CPU, rows of any width, with and without bias and residual") {
  int turn = 0;
  for (const Shape& shape : {Shape{5, 7}, Shape{9, 8}, Shape{11, 264}, Shape{3, 3, 768}, Shape{8, 1032}, Shape{3, 2048}, Shape{2, 2056},
           Shape{70, 256}, Shape{41, 1024}, Shape{45, 1536}, Shape{67, 1288}}) {
    ++turn;
    for (int with : {0, 1, 2, 3})
      on_gpus([&](Device device) {
        for (Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16}) {
          if (!test::everything() && device == Device::cuda_emulated && (with + turn + static_cast<int>(dtype)) % 4 != 0) continue;
          const bool residual = with & 1, biased = with & 2;
          INFO("shape ", show(shape), ", with ", with);
          const auto got = results(shape, residual, biased, dtype, dtype, device);
          const auto on_cpu = results(shape, residual, biased, dtype, dtype, Device::cpu);
          const auto exact = results(shape, residual, biased, dtype, Dtype::f64, Device::cpu);
          REQUIRE(got.size() == exact.size());
          const double least = dtype == Dtype::bf16 ? 0 : static_cast<double>(shape[-1]) * unit(dtype);
          for (size_t i = 0; i < got.size(); ++i)
            CHECK(error_of(got[i], values_of(exact[i])) <= 2 * error_of(on_cpu[i], values_of(exact[i])) + least);
        }
      });
  }
}

TEST_CASE("norms: the same bits for any number of threads; a row of zeros, what is not finite") {
  const Tensor x = drawn({211, 130}, Dtype::f32, Device::cpu, 1), gain = drawn({130}, Dtype::f32, Device::cpu, 2);
  for (Kind kind : {Kind::layer, Kind::rms})
    check_threads([&] {
      const auto of = [&](const std::vector<Tensor>& in) { return norm(kind, in); };
      const std::vector<Tensor> inputs = kind == Kind::layer ? std::vector{x, gain, gain} : std::vector{x, gain};
      std::vector<Tensor> all = gradients_of(of, inputs, x);
      all.push_back(norm(kind, {x, gain, Tensor()}));
      return all;
    });
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    const Tensor ones = tensor_of({1, 1, 1}, {3}, dtype, device);
    CHECK(values_of(rms_norm(tensor_of({0, 0, 0}, {1, 3}, dtype, device), ones)) == Values{0, 0, 0});
    CHECK(std::isnan(values_of(rms_norm(tensor_of({1, NAN, 0}, {1, 3}, dtype, device), ones))[0]));
  });
}

// The factor of the row would be 0, and the row its bias.
TEST_CASE("norms: NaN if the mean square of a row overflows, forward and backward") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (int64_t width : {4, 8}) {  // bf16 rows of 8 have a separate kernel on a GPU
      Values values(static_cast<size_t>(2 * width), 1);
      values[2] = dtype == Dtype::f64 ? 1e200 : 1e30;
      values.back() = 3;
      const Tensor x = tensor_of(values, {2, width}, dtype, device), gain = drawn({width}, dtype, device, 1);
      const auto is_right = [&](const Tensor& y) {
        const Values all = values_of(y);
        for (size_t i = 0; i < all.size(); ++i) CHECK(std::isnan(all[i]) == (i < all.size() / 2));
      };
      for (Kind kind : {Kind::layer, Kind::rms}) {
        const auto of = [&](const std::vector<Tensor>& in) { return norm(kind, {in[0], gain, gain}); };
        is_right(of({x}));
        is_right(gradients_of(of, {x}, drawn({2, width}, dtype, device, 2))[0]);
        is_right(residual_norm(kind, {x, zeros_like(x), gain, gain})[1]);
      }
    }
  });
}

TEST_CASE("norms: messages") {
  const Tensor x({2, 3}), gain({3}), wide({8}), none, bf16_rows({2, 8}, Dtype::bf16);
  const auto layer = [&](const Tensor& gain_d, const Tensor& bias_d) { return message_of([&] { layer_norm(x, gain_d, bias_d); }); };
  CHECK(layer(Tensor({4}), none) == "layer_norm: index d is 3 in x_rd[2 3] but 4 in gain_d[4]");
  CHECK(layer(gain, Tensor({2})) == "layer_norm: index d is 3 in x_rd[2 3] but 2 in bias_d[2]");
  CHECK(message_of([&] { layer_norm(bf16_rows, wide, none); }) == "layer_norm: x_rd is bf16 on cpu, but gain_d is f32 on cpu");
  const auto residual = [&](const Tensor& x_rd, const Tensor& branch_rd, const Tensor& gain_d) {
    return message_of([&] { residual_layer_norm(x_rd, branch_rd, gain_d, none); });
  };
  CHECK(residual(x, Tensor({2, 4}), gain) == "residual_layer_norm: index d is 3 in x_rd[2 3] but 4 in branch_rd[2 4]");
  CHECK(residual(Tensor({4, 8}), Tensor({2, 8}), wide) == "residual_layer_norm: index r is 4 in x_rd[4 8] but 2 in branch_rd[2 8]");
  CHECK(residual(Tensor({4, 2, 8}), Tensor({2, 4, 8}), wide) ==
        "residual_layer_norm: x_rd[4 2 8] and branch_rd[2 4 8] differ in the indices merged into r");
  CHECK(residual(Tensor({2, 8}), bf16_rows, wide) == "residual_layer_norm: x_rd is f32 on cpu, but branch_rd is bf16 on cpu");
  const auto rms = [&](const Tensor& gain_d) { return message_of([&] { rms_norm(x, gain_d); }); };
  CHECK(rms(Tensor({4})) == "rms_norm: index d is 3 in x_rd[2 3] but 4 in gain_d[4]");
  CHECK(rms(none) == "rms_norm: gain_d is empty");
  CHECK(rms(Tensor({3}, Dtype::bf16)) == "rms_norm: x_rd is f32 on cpu, but gain_d is bf16 on cpu");
  CHECK(message_of([&] {
    residual_rms_norm(x, Tensor({3, 3}), gain);
  }) == "residual_rms_norm: index r is 2 in x_rd[2 3] but 3 in branch_rd[3 3]");
}
