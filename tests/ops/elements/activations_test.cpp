// Activation functions and gated products against formulas of doubles, with the error and hyperbolic functions of the standard library.
#include "ops/elements/activations.h"

#include <bit>
#include <numbers>

#include "core/choice.h"
#include "ops/products/products.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

// The bounds: of the value relative to its size, of the slope relative to its own, in roundings of the dtype and of the type of sums.
struct Form {
  const char* name;
  Tensor (*op)(const Arg&);
  double (*value)(double x);
  double (*slope)(double x);
  double (*size)(double x);
  double (*slope_size)(double x);
  double units, sum_units, slope_units, slope_sum_units;
};

double magnitude(double x) { return std::abs(x); }
double twice(double x) { return 2 * std::abs(x); }
double square(double x) { return x * x; }
double one(double) { return 1; }
double below(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }
double tanh_argument(double x) { return std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x); }
double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// The slopes of the first three are at most 1.13, and rounded when they are kept and when they are multiplied. They contain a few
// roundings; those of s enter 2 x du/dx times, at most 61 if s is not 1 to all digits of a double.
const Form kForms[] = {
    {"gelu", gelu, [](double x) { return x * below(x); },
        [](double x) { return below(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }, magnitude, one, 1, 16, 2.3, 183},
    {"gelu_tanh", gelu_tanh, [](double x) { return x / 2 * (1 + std::tanh(tanh_argument(x))); },
        [](double x) {
          const double u = tanh_argument(x), du = std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
          return (1 + std::tanh(u)) / 2 + x / 2 * du / (std::cosh(u) * std::cosh(u));
        },
        magnitude, one, 1, 16, 2.3, 183},
    {"silu", silu, [](double x) { return x * logistic(x); }, [](double x) { return logistic(x) * (1 + x * (1 - logistic(x))); }, magnitude,
        one, 1, 16, 2.3, 183},
    {"relu", relu, [](double x) { return std::fmax(x, 0); }, [](double x) { return x > 0 ? 1.0 : 0.0; }, magnitude, one, 0, 0, 0, 0},
    {"relu2", relu2, [](double x) { return x > 0 ? x * x : 0; }, [](double x) { return x > 0 ? 2 * x : 0; }, square, twice, 1, 0, 1, 0},
    {"sigmoid", sigmoid, logistic, [](double x) { return logistic(x) * (1 - logistic(x)); }, one, one, 4, 0, 2, 0},
};

Tensor gradient(const Form& form, const Tensor& x, const Tensor& dy) {
  return gradients_of([&](const std::vector<Tensor>& in) { return form.op(in[0]); }, {x}, dy)[0];
}

void check(const Form& form, const Shape& shape, double width, Dtype dtype, Device device) {
  Values given = values_of(drawn(shape, dtype, Device::cpu, 1));
  for (double& v : given) v *= width;
  given[0] = 0;
  const Tensor x = tensor_of(given, shape, dtype, device), dy = drawn(shape, dtype, device, 2);
  Values y, y_size, dx, dx_size;
  const Values xv = values_of(x), dyv = values_of(dy);
  for (size_t i = 0; i < xv.size(); ++i) {
    y.push_back(form.value(xv[i])), y_size.push_back(form.size(xv[i]));
    dx.push_back(dyv[i] * form.slope(xv[i])), dx_size.push_back(std::abs(dyv[i]) * form.slope_size(xv[i]));
  }
  CHECK(error_of(form.op(x), y, y_size) <= form.units * unit(dtype) + form.sum_units * sum_unit(dtype));
  CHECK(error_of(gradient(form, x, dy), dx, dx_size) <= form.slope_units * unit(dtype) + form.slope_sum_units * sum_unit(dtype));
}

// The spacing of bf16 numbers of the size of x.
double bf16_spacing(double x) { return std::ldexp(1, std::max(std::ilogb(x), -126) - 7); }

// y, dx and the sizes of the numbers that are rounded, for rows of 2 f columns.
struct Gated {
  Values y, y_size, dx, dx_size;

  Gated(const Form& form, const Values& x, const Values& dy, size_t f) : dx(x.size()), dx_size(x.size()) {
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

TEST_CASE("activations: values and slopes are the formula's, near 0, far from it and between") {
  for (const Form& form : kForms) {
    CAPTURE(std::string(form.name));
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      for (double width : {1e-3, 1.0, 4.0, 30.0}) check(form, {7, 43}, width, dtype, device);
      check(form, {1}, 1, dtype, device);
      if (device != Device::cuda_emulated) check(form, {40001}, 4, dtype, device);
    });
  }
}

TEST_CASE("activations: the same value with and without a tape; 0, NaN and infinity; any rank, no elements") {
  for (const Form& form : kForms) {
    CAPTURE(std::string(form.name));
    const bool is_smooth = form.slope_sum_units > 0;
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      const Tensor x = drawn({301}, dtype, device, 3), alone = form.op(x);
      Tape tape;
      CHECK(same_bits(form.op(tape.watch(x)), alone));
      CHECK(std::isnan(values_of(form.op(tensor_of({NAN}, {1}, dtype, device)))[0]));
      if (is_smooth) return;
      const Values given{0, HUGE_VAL, -HUGE_VAL, 1024, -1024}, y = values_of(form.op(tensor_of(given, {5}, dtype, device)));
      for (size_t i = 0; i < given.size(); ++i) CHECK(y[i] == form.value(given[i]));
    });
    CHECK(form.op(Tensor({0, 3})).shape() == Shape({0, 3}));
    CHECK(form.op(tensor_of({-1}, {}, Dtype::f32, Device::cpu)).shape() == Shape({}));
  }
  on_every_device_and_dtype([&](Device device, Dtype dtype) {
    const Tensor x = tensor_of({NAN, HUGE_VAL, -HUGE_VAL, 0}, {4}, dtype, device), ones = tensor_of({1, 1, 1, 1}, {4}, dtype, device);
    const Values of_relu = values_of(gradient(kForms[3], x, ones)), of_relu2 = values_of(gradient(kForms[4], x, ones));
    for (size_t i = 1; i < 4; ++i) CHECK(of_relu[i] == (i == 1 ? 1 : 0));
    CHECK(std::isnan(of_relu2[0]));
  });
}

TEST_CASE("gelu_tanh in bf16: every number's value and slope are the formula's, rounded once") {
  constexpr double kHalf = 0.51;  // spacings: one rounding, and the error of f32 before it
  const Form& form = kForms[1];
  Values given;
  for (uint32_t bits = 0; bits < 0x8000; ++bits)
    for (uint32_t sign : {0u, 0x8000u}) {
      const auto x = static_cast<double>(std::bit_cast<float>((bits | sign) << 16));
      if (std::abs(x) < 1e6) given.push_back(x);
    }
  const auto n = static_cast<int64_t>(given.size());
  on_every_device([&](Device device) {
    const Tensor x = tensor_of(given, {n}, Dtype::bf16, device), ones = tensor_of(Values(given.size(), 1), {n}, Dtype::bf16, device);
    const Values y = values_of(form.op(x)), slope = values_of(gradient(form, x, ones));
    double worst = 0, worst_slope = 0;
    for (size_t i = 0; i < given.size(); ++i) {
      const double x_i = given[i], u = tanh_argument(x_i), below = 1 / (1 + std::exp(-2 * u)), above = 1 / (1 + std::exp(2 * u));
      const double du = std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x_i * x_i), rest = 2 * x_i * below * above * du;
      // Below 2^-100 a GPU may compute 0; the two terms of the slope cancel at its change of sign.
      raise_to(worst, (std::abs(y[i] - x_i * below) - 0x1p-100) / bf16_spacing(x_i * below));
      const double lost = 0x1p-18 * (below + std::abs(rest)) + 0x1p-100;
      raise_to(worst_slope, (std::abs(slope[i] - (below + rest)) - lost) / bf16_spacing(below + rest));
    }
    CHECK(worst <= kHalf);
    CHECK(worst_slope <= kHalf);
  });
}

TEST_CASE("gated: values and gradients are those of act(gate) up, rounded once, at odd widths and in pieces of 16 bytes") {
  for (size_t k = 0; k < choices(Activation{}).size(); ++k) {
    const auto activation = static_cast<Activation>(k);
    const Form& form =
        *std::find_if(std::begin(kForms), std::end(kForms), [&](const Form& f) { return std::string(f.name) == choices(Activation{})[k]; });
    const auto op = [&](const std::vector<Tensor>& in) { return gated(activation, in[0]); };
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      CAPTURE(std::string(form.name));
      for (const auto& [rows, f] : {std::pair<int64_t, int64_t>{1, 1}, {7, 5}, {3, 64}, {2, 301}, {0, 3}}) {
        const Tensor x = drawn({rows, 2 * f}, dtype, device, 1), dy = drawn({rows, f}, dtype, device, 2);
        const Gated naive(form, values_of(x), values_of(dy), static_cast<size_t>(f));
        CHECK(error_of(op({x}), naive.y, naive.y_size) <= unit(dtype) + 32 * sum_unit(dtype));
        CHECK(error_of(gradients_of(op, {x}, dy)[0], naive.dx, naive.dx_size) <= 1.2 * unit(dtype) + 64 * sum_unit(dtype));
        if (device == Device::cpu) CHECK(same_bits(activate(activation, x), form.op(x)));
      }
    });
  }
}

TEST_CASE("gated: the same bits for any number of threads, messages and shapes") {
  const Tensor x = drawn({211, 260}, Dtype::f32, Device::cpu, 1), dy = drawn({211, 130}, Dtype::f32, Device::cpu, 2);
  const auto op = [](const std::vector<Tensor>& in) { return gated(Activation::silu, in[0]); };
  check_threads([&] { return std::vector<Tensor>{op({x}), gradients_of(op, {x}, dy)[0]}; });
  CHECK(gated(Activation::silu, Tensor({2, 3, 8})).shape() == Shape({2, 3, 4}));
  CHECK(gated(Activation::relu, Tensor({2, 0})).shape() == Shape({2, 0}));
  CHECK(message_of([] {
    gated(Activation::silu, Tensor({2, 7}));
  }) == "gated: there are 7 columns in x_rd[2 7], expected an even number (one half is the gate)");
  CHECK(message_of([] { gated(Activation::silu, Tensor(Shape{})); }) == "gated: x_rd[] does not have the indices 'rd'");
}
