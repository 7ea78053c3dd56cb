// gelu and gelu_tanh against their formulas, with the error and hyperbolic functions of the standard library.
#include <numbers>

#include "ops/elements/activations.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

struct Form {
  const char* name;
  Tensor (*op)(const Arg&);
  double (*value)(double x);
  double (*slope)(double x);
};

double below(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }
double tanh_argument(double x) { return std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x); }

const Form forms[] = {
    {"gelu", gelu, [](double x) { return x * below(x); },
        [](double x) { return below(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }},
    {"gelu_tanh", gelu_tanh, [](double x) { return x / 2 * (1 + std::tanh(tanh_argument(x))); },
        [](double x) {
          const double u = tanh_argument(x), du = std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
          return (1 + std::tanh(u)) / 2 + x / 2 * du / (std::cosh(u) * std::cosh(u));
        }},
};

}  // namespace

TEST_CASE("gelu: values and slopes are the formula's, near 0, far from it and between") {
  for (const Form& form : forms) {
    CAPTURE(form.name);
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

TEST_CASE("gelu: the same value with and without a tape, and a NaN stays one") {
  for (const Form& form : forms)
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      const Tensor x = drawn({1000}, dtype, device, 3);
      const Tensor alone = form.op(x);
      Tape tape;
      CHECK(same_bits(form.op(tape.watch(x)), alone));
      CHECK(std::isnan(values_of(form.op(tensor_of({NAN}, {1}, dtype, device)))[0]));
    });
}
