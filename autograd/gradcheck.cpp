// A derivative is a slope, measured from two values of the function: (L(x + h) - L(x - h)) / 2h. The terms with the second derivative
// cancel in the difference, so the error is about h^2. Rounding adds about 1e-16 / h. In f64 with h = 1e-5, these errors are near 1e-10 and
// 1e-11. In f32, no h is good: rounding dominates before h^2 is small enough.
#include "autograd/gradcheck.h"

#include <algorithm>
#include <cmath>

#include "autograd/tape.h"
#include "core/error.h"
#include "core/philox.h"
#include "core/random.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {
namespace {

// The number that is differentiated: L(x) = <c, f(x)>, the sum of all outputs, each times a random number.
struct Loss {
  const CheckedFunction& f;
  std::vector<Tensor> cs = {};

  double operator()(const std::vector<Parameter>& inputs) const {
    double sum = 0;
    const std::vector<Tensor> ys = f(inputs);
    for (size_t k = 0; k < ys.size(); ++k) {
      const Tensor c = to(cs[k], Device::cpu), y = to(ys[k], Device::cpu);
      for (int64_t i = 0; i < y.size(); ++i) sum += c.data<double>()[i] * y.data<double>()[i];
    }
    return sum;
  }
};

// dL/dx_i by central differences, for element i of an input x.
double central_difference(const Loss& loss, const std::vector<Parameter>& inputs, Parameter& x, int64_t i, double h) {
  const Tensor original = x.value;
  const auto loss_at = [&](double step) {
    Tensor moved(original.shape(), Dtype::f64);
    copy(moved, original);
    moved.data<double>()[i] += step;
    x.value = to(moved, original.device());
    return loss(inputs);
  };
  const double above = loss_at(h), below = loss_at(-h);
  x.value = original;
  return (above - below) / (2 * h);
}

Tensor random_like(const Tensor& t, uint64_t stream) {
  Tensor c(t.shape(), Dtype::f64);
  fill_normal(c.data<double>(), c.size(), 0.0, 1.0, Philox{20, stream});
  return to(c, t.device());
}

std::vector<Parameter> inputs_on(Device device, const std::vector<Tensor>& inputs) {
  std::vector<Parameter> all;
  for (const Tensor& input : inputs) {
    const Tensor x = input.dtype() == Dtype::i64 ? input.detached() : convert(input.detached(), Dtype::f64);
    all.push_back({to(x, device), {}, format_message("input {}", {all.size()})});
  }
  return all;
}

}  // namespace

GradCheck gradcheck(const CheckedFunction& f, std::vector<Parameter> inputs, double h) {
  GradCheck result;
  Loss loss{f};
  {
    Tape tape;
    const std::vector<Tensor> ys = f(inputs);
    for (const auto& node : tape.nodes()) result.ops.emplace_back(node->op);
    for (const Tensor& y : ys) loss.cs.push_back(random_like(y, loss.cs.size()));
    tape.backward(ys, loss.cs);
  }
  result.least_norm = HUGE_VAL;
  for (size_t k = 0; k < inputs.size(); ++k) {
    Parameter& x = inputs[k];
    if (x.value.dtype() == Dtype::i64) continue;
    const Tensor grad = x.grad ? to(x.grad, Device::cpu) : zeros(x.value.shape(), Dtype::f64, Device::cpu);
    double largest = 0, worst = 0, squares = 0;
    std::string worst_at;
    for (int64_t i = 0; i < x.value.size(); ++i) {
      const double numeric = central_difference(loss, inputs, x, i, h), analytic = grad.data<double>()[i];
      largest = std::max(largest, std::abs(numeric));
      squares += analytic * analytic;
      const double error = std::isnan(numeric - analytic) ? HUGE_VAL : std::abs(numeric - analytic);
      if (error <= worst) continue;
      worst = error;
      worst_at = format_message("input {}, element {}: {:.9g} by differences, {:.9g} by backward", {k, i, numeric, analytic});
    }
    const double relative = largest > 0 && std::isfinite(worst) ? worst / largest : worst;
    if (relative > result.worst) {
      result.worst = relative;
      result.worst_at = worst_at;
    }
    result.least_norm = std::min(result.least_norm, std::sqrt(squares));
  }
  return result;
}

std::vector<DeviceCheck> check_gradients(
    const std::function<Tensor(const std::vector<Arg>&)>& f, const std::vector<Tensor>& inputs, double tolerance) {
  const SavedRandomState random;
  const CheckedFunction of_parameters = [&](const std::vector<Parameter>& x) {
    random.restore();  // each call samples the same dropout
    std::vector<Arg> args;
    for (const Parameter& p : x) args.push_back(p.value.dtype() == Dtype::i64 ? Arg(p.value) : Arg(p));
    return std::vector<Tensor>{f(args)};
  };
  std::vector<DeviceCheck> checks;
  for (const Device device : {Device::cpu, Device::cuda_emulated, Device::cuda}) {
    if (!available(device)) continue;
    const GradCheck result = gradcheck(of_parameters, inputs_on(device, inputs));
    if (!(result.worst <= tolerance)) fail("check_gradients: on {}, {}", {name_of(device), result.worst_at});
    if (!(result.least_norm > 0)) fail("check_gradients: on {}, a gradient is zero everywhere", {name_of(device)});
    checks.push_back({device, result});
  }
  return checks;
}

}  // namespace ricci
