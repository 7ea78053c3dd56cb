// The gated product against act(gate) * up in f64, with every activation.
#include "core/cpu/parallel.h"
#include "ops/products/products.h"
#include "tests/ops/elements/forms.h"

using namespace ricci;

namespace {

std::vector<Form> all_forms() {
  std::vector<Form> all(std::begin(smooth_forms), std::end(smooth_forms));
  all.insert(all.end(), std::begin(rectified_forms), std::end(rectified_forms));
  return all;
}

// y, dx and how large the numbers are whose roundings count, for rows of 2 f columns.
struct Naive {
  Values y, y_size, dx, dx_size;

  Naive(const Form& form, const Values& x, const Values& dy, size_t f) : dx(x.size()), dx_size(x.size()) {
    for (size_t i = 0; i < dy.size(); ++i) {
      const size_t gate = i / f * 2 * f + i % f, up = gate + f;
      const double value = form.value(x[gate]), slope = form.slope(x[gate]), size = std::max(std::abs(value), std::abs(x[gate]));
      y.push_back(value * x[up]), y_size.push_back(size * std::abs(x[up]));
      dx[gate] = dy[i] * x[up] * slope, dx_size[gate] = std::abs(dy[i] * x[up]) * std::max(1.0, std::abs(slope));
      dx[up] = dy[i] * value, dx_size[up] = std::abs(dy[i]) * size;
    }
  }
};

}  // namespace

TEST_CASE("gated: values and gradients are those of act(gate) up, rounded once, at odd widths and in pieces of 16 bytes") {
  for (const Form& form : all_forms())
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      CAPTURE(name_of(form.activation));
      for (const auto& [rows, f] : {std::pair<int64_t, int64_t>{1, 1}, {7, 5}, {3, 64}, {2, 301}, {0, 3}}) {
        const int64_t width = f;
        CAPTURE(width);
        const Tensor x = drawn({rows, 2 * f}, dtype, device, 1), dy = drawn({rows, f}, dtype, device, 2);
        const auto op = [&](const std::vector<Tensor>& in) { return gated(form.activation, in[0]); };
        const Naive naive(form, values_of(x), values_of(dy), static_cast<size_t>(f));
        CHECK(error_of(op({x}), naive.y, naive.y_size) <= unit(dtype) + 32 * sum_unit(dtype));
        CHECK(error_of(gradients_of(op, {x}, dy)[0], naive.dx, naive.dx_size) <= 1.2 * unit(dtype) + 64 * sum_unit(dtype));
        if (dtype == Dtype::f64 || device != Device::cpu) continue;
        CHECK(same_bits(activate(form.activation, x), form.op(x)));
      }
    });
}

TEST_CASE("gated: the same bits for any number of threads") {
  const int before = thread_count();
  const Tensor x = drawn({211, 260}, Dtype::f32, Device::cpu, 1), dy = drawn({211, 130}, Dtype::f32, Device::cpu, 2);
  const auto op = [](const std::vector<Tensor>& in) { return gated(Activation::silu, in[0]); };
  set_thread_count(1);
  const Tensor y = op({x}), dx = gradients_of(op, {x}, dy)[0];
  for (int threads : {2, 5}) {
    set_thread_count(threads);
    CHECK(same_bits(op({x}), y));
    CHECK(same_bits(gradients_of(op, {x}, dy)[0], dx));
  }
  set_thread_count(before);
}

TEST_CASE("gated: messages and shapes") {
  CHECK(gated(Activation::silu, Tensor({2, 3, 8})).shape() == Shape({2, 3, 4}));
  CHECK(gated(Activation::relu, Tensor({2, 0})).shape() == Shape({2, 0}));
  CHECK(message_of([] {
    gated(Activation::silu, Tensor({2, 7}));
  }) == "gated: 7 columns of x_rd[2 7] have no halves, a gate and what it multiplies");
  CHECK(message_of([] { gated(Activation::silu, Tensor({2, 8}, Dtype::i64)); }) == "gated: x_rd[2 8] is i64, expected f32, f64 or bf16");
  CHECK(message_of([] { gated(Activation::silu, Tensor(Shape{})); }) == "gated: x_rd[] does not have the indices 'rd'");
}
