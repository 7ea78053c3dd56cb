#include "core/cpu/parallel.h"
#include "core/dims.h"
#include "ops/products/products.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

// y_rf = sum_d x_rd w_fd + bias_f and the gradients, each with the sum of the absolute values of its terms.
struct Naive {
  Values y, dx, dw, dbias, y_size, dx_size, dw_size, dbias_size;

  Naive(const Values& x, const Values& w, const Values& bias, const Values& dy, size_t r, size_t d, size_t f)
      : y(r * f), dx(r * d), dw(f * d), dbias(f), y_size(r * f), dx_size(r * d), dw_size(f * d), dbias_size(f) {
    const auto add = [](Values& sum, Values& size, size_t at, double term) { sum[at] += term, size[at] += std::abs(term); };
    for (size_t i = 0; i < r; ++i)
      for (size_t o = 0; o < f; ++o) {
        if (!bias.empty()) add(y, y_size, i * f + o, bias[o]);
        add(dbias, dbias_size, o, dy[i * f + o]);
        for (size_t j = 0; j < d; ++j) {
          add(y, y_size, i * f + o, x[i * d + j] * w[o * d + j]);
          add(dx, dx_size, i * d + j, dy[i * f + o] * w[o * d + j]);
          add(dw, dw_size, o * d + j, dy[i * f + o] * x[i * d + j]);
        }
      }
  }
};

Shape with_width(Shape shape, int64_t width) {
  shape.set(-1, width);
  return shape;
}

void check(const Shape& shape, int64_t f, bool with_bias, Device device, Dtype dtype) {
  const int64_t d = shape[-1];
  int64_t rows = 1;
  for (int i = 0; i < shape.rank() - 1; ++i) rows *= shape[i];
  const std::string shown = show(shape);
  CAPTURE(shown);
  CAPTURE(f);
  CAPTURE(with_bias);
  const Tensor x = drawn(shape, dtype, device, 1), w = drawn({f, d}, dtype, device, 2);
  const Tensor bias = with_bias ? drawn({f}, dtype, device, 3) : Tensor(), dy = drawn(with_width(shape, f), dtype, device, 4);
  const Naive naive(values_of(x), values_of(w), with_bias ? values_of(bias) : Values{}, values_of(dy), static_cast<size_t>(rows),
      static_cast<size_t>(d), static_cast<size_t>(f));
  const auto bound = [&](int64_t terms) { return 1.01 * unit(dtype) + static_cast<double>(terms + 2) * sum_unit(dtype); };
  const Tensor y = linear(x, w, bias);
  CHECK(y.shape() == with_width(shape, f));
  CHECK(error_of(y, naive.y, naive.y_size) <= bound(d));
  std::vector<Tensor> inputs = {x, w};
  if (with_bias) inputs.push_back(bias);
  const auto map = [&](const std::vector<Tensor>& in) { return linear(in[0], in[1], with_bias ? in[2] : Tensor()); };
  const auto grads = gradients_of(map, inputs, dy);
  CHECK(error_of(grads[0], naive.dx, naive.dx_size) <= bound(f));
  CHECK(error_of(grads[1], naive.dw, naive.dw_size) <= bound(rows));
  if (with_bias) CHECK(error_of(grads[2], naive.dbias, naive.dbias_size) <= bound(rows));
}

}  // namespace

TEST_CASE("linear: odd sizes, one row, one column, no rows, no width") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (bool bias : {true, false}) {
      check({2, 3, 5}, 7, bias, device, dtype);
      check({33}, 17, bias, device, dtype);
      check({1, 65}, 33, bias, device, dtype);
      check({3, 2, 2, 4}, 1, bias, device, dtype);
      check({17, 1}, 5, bias, device, dtype);
      check({0, 3}, 4, bias, device, dtype);
      check({3, 0}, 4, bias, device, dtype);
    }
  });
}

TEST_CASE("linear: sizes that are cut up, on the CPU") {
  for (Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16}) {
    check({12, 33, 70}, 65, true, Device::cpu, dtype);
    check({1, 300}, 700, true, Device::cpu, dtype);
    check({3, 300}, 130, false, Device::cpu, dtype);
  }
}

TEST_CASE("linear: the bits do not depend on the number of threads") {
  const int threads = thread_count();
  const Tensor x = drawn({300, 130}, Dtype::f32, Device::cpu, 1), w = drawn({390, 130}, Dtype::f32, Device::cpu, 2);
  const Tensor bias = drawn({390}, Dtype::f32, Device::cpu, 3), dy = drawn({300, 390}, Dtype::f32, Device::cpu, 4);
  std::vector<Tensor> first;
  for (int count : {1, 2, 7}) {
    set_thread_count(count);
    std::vector<Tensor> now = gradients_of([](const std::vector<Tensor>& in) { return linear(in[0], in[1], in[2]); }, {x, w, bias}, dy);
    now.push_back(linear(x, w, bias));
    if (first.empty()) first = now;
    for (size_t i = 0; i < now.size(); ++i) CHECK(same_bits(first[i], now[i]));
  }
  set_thread_count(threads);
}

TEST_CASE("errors of linear name the values") {
  const auto error = [](const Tensor& x, const Tensor& w, const Tensor& bias) { return message_of([&] { linear(x, w, bias); }); };
  CHECK(error(Tensor({2, 5, 3}), Tensor({7, 4}), Tensor()) == "linear: index d is 3 in x_rd[10 3] but 4 in w_fd[7 4]");
  CHECK(error(Tensor({5, 3}), Tensor({7, 3}), Tensor({6})) == "linear: index f is 7 in w_fd[7 3] but 6 in bias_f[6]");
  CHECK(error(Tensor({5, 3}), Tensor({7, 3}, Dtype::f64), Tensor()) == "linear: x_rd is f32 on cpu, w_fd f64 on cpu");
  CHECK(error(Tensor({5, 3}), Tensor({7, 3}), Tensor({7}, Dtype::bf16)) == "linear: x_rd is f32 on cpu, bias_f bf16 on cpu");
  const Tensor elsewhere({7, 3}, Dtype::f32, Device::cuda_emulated);
  CHECK(error(Tensor({5, 3}), elsewhere, Tensor()) == "linear: x_rd is f32 on cpu, w_fd f32 on cuda_emulated");
  CHECK(error(Tensor(Shape{}), Tensor({7, 1}), Tensor()) == "linear: x_rd[] does not have the indices 'rd'");
}
