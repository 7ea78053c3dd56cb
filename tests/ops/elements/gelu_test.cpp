// gelu, gelu_tanh and silu against their formulas.
#include <bit>

#include "tests/ops/elements/forms.h"

using namespace ricci;

namespace {

// The spacing of bf16 numbers of the size of x.
double bf16_spacing(double x) { return std::ldexp(1, std::max(std::ilogb(x), -126) - 7); }

}  // namespace

TEST_CASE("gelu, gelu_tanh and silu: values and slopes are the formula's, near 0, far from it and between") {
  for (const Form& form : smooth_forms) {
    CAPTURE(name_of(form.activation));
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      for (double width : {1e-3, 1.0, 4.0, 30.0}) {
        Values given = values_of(drawn({301}, dtype, Device::cpu, 1));
        for (double& v : given) v *= width;
        given[0] = 0;
        const Tensor x = tensor_of(given, {7, 43}, dtype, device), dy = drawn({7, 43}, dtype, device, 2);
        Values y, y_size, dx, dx_size;
        const Values xv = values_of(x), dyv = values_of(dy);
        for (size_t i = 0; i < xv.size(); ++i) {
          y.push_back(form.value(xv[i])), y_size.push_back(std::abs(xv[i]));
          dx.push_back(dyv[i] * form.slope(xv[i])), dx_size.push_back(std::abs(dyv[i]));
        }
        // The slope is at most 1.13 and rounded as it is kept and again as it is multiplied. Inside it are a few roundings;
        // the roundings of s count 2 x du/dx times, which is 61 at most where s is not 1 to all digits of a double.
        CHECK(error_of(form.op(x), y, y_size) <= unit(dtype) + 16 * sum_unit(dtype));
        const Tensor gradient = gradients_of([&](const std::vector<Tensor>& in) { return form.op(in[0]); }, {x}, dy)[0];
        CHECK(error_of(gradient, dx, dx_size) <= 2.3 * unit(dtype) + 3 * 61 * sum_unit(dtype));
      }
    });
  }
}

TEST_CASE("gelu, gelu_tanh and silu: the same value with and without a tape, and a NaN stays one") {
  for (const Form& form : smooth_forms)
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      const Tensor x = drawn({1000}, dtype, device, 3);
      const Tensor alone = form.op(x);
      Tape tape;
      CHECK(same_bits(form.op(tape.watch(x)), alone));
      CHECK(std::isnan(values_of(form.op(tensor_of({NAN}, {1}, dtype, device)))[0]));
    });
}

TEST_CASE("gelu_tanh in bf16: every number's value and slope are the formula's, rounded once") {
  constexpr double kHalf = 0.51;  // of the spacing: one rounding, and what is wrong in the last bits of f32 before it
  const Form& form = smooth_forms[1];
  Values given;
  for (uint32_t bits = 0; bits < 0x8000; ++bits)
    for (uint32_t sign : {0u, 0x8000u}) {
      const auto x = static_cast<double>(std::bit_cast<float>((bits | sign) << 16));
      if (std::abs(x) < 1e6) given.push_back(x);
    }
  const auto n = static_cast<int64_t>(given.size());
  on_every_device([&](Device device) {
    const Tensor x = tensor_of(given, {n}, Dtype::bf16, device), ones = tensor_of(Values(given.size(), 1), {n}, Dtype::bf16, device);
    const Values y = values_of(form.op(x)), slope = values_of(gradients_of([&](const auto&in) { return form.op(in[0]); }, {x}, ones)[0]);
    double worst = 0, worst_slope = 0;
    for (size_t i = 0; i < given.size(); ++i) {
      const double x_i = given[i], u = tanh_argument(x_i), below = 1 / (1 + std::exp(-2 * u)), above = 1 / (1 + std::exp(2 * u));
      const double du = std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x_i * x_i), rest = 2 * x_i * below * above * du;
      // Below 2^-100 a GPU may take 0; the two terms of the slope cancel where it changes its sign.
      raise_to(worst, (std::abs(y[i] - x_i * below) - 0x1p-100) / bf16_spacing(x_i * below));
      const double lost = 0x1p-18 * (below + std::abs(rest)) + 0x1p-100;
      raise_to(worst_slope, (std::abs(slope[i] - (below + rest)) - lost) / bf16_spacing(below + rest));
    }
    CHECK(worst <= kHalf);
    CHECK(worst_slope <= kHalf);
  });
}
