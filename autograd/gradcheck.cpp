#include "autograd/gradcheck.h"

#include <algorithm>
#include <cmath>

#include "autograd/random.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "core/random.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {
namespace {

Tensor random_like(const Tensor& t, uint64_t stream) {
  Tensor c(t.shape(), Dtype::f64);
  fill_normal(c.data<double>(), c.size(), 0.0, 1.0, Philox{20, stream});
  return to(c, t.device());
}

double dot(const std::vector<Tensor>& cs, const std::vector<Tensor>& ys) {
  double sum = 0;
  for (size_t k = 0; k < ys.size(); ++k) {
    const Tensor c = to(cs[k], Device::cpu), y = to(ys[k], Device::cpu);
    for (int64_t i = 0; i < y.size(); ++i) sum += c.data<double>()[i] * y.data<double>()[i];
  }
  return sum;
}

// d<c, f(x)>/dx_i by central differences.
double difference(
    const CheckedFunction& f, const std::vector<Tensor>& cs, std::vector<Parameter>& inputs, Parameter& x, int64_t i, double h) {
  const Tensor original = x.value;
  auto moved = [&](double by) {
    Tensor host(original.shape(), Dtype::f64);
    copy(host, original);
    host.data<double>()[i] += by;
    x.value = to(host, original.device());
    return dot(cs, f(inputs));
  };
  const double up = moved(h), down = moved(-h);
  x.value = original;
  return (up - down) / (2 * h);
}

std::vector<Parameter> inputs_on(Device device, const std::vector<Tensor>& inputs) {
  std::vector<Parameter> all;
  for (const Tensor& input : inputs) {
    const Tensor x = input.dtype() == Dtype::i64 ? input.detached() : convert(input.detached(), Dtype::f64);
    all.push_back({to(x, device), {}, format_message("input {}", {all.size()})});
  }
  return all;
}

// Restores the random state at its begin and at its end, so that each call of f draws the same dropout.
struct SameRandomNumbers {
  RandomState state = random_state();
  void again() const { set_random_state(state); }
  ~SameRandomNumbers() { again(); }
};

}  // namespace

GradCheck gradcheck(const CheckedFunction& f, std::vector<Parameter> inputs, double h) {
  GradCheck result;
  std::vector<Tensor> cs;
  {
    Tape tape;
    const std::vector<Tensor> ys = f(inputs);
    for (const char* name : tape.op_names()) result.ops.emplace_back(name);
    for (const Tensor& y : ys) cs.push_back(random_like(y, cs.size()));
    tape.backward(ys, cs);
  }
  result.least_norm = HUGE_VAL;
  for (size_t k = 0; k < inputs.size(); ++k) {
    Parameter& x = inputs[k];
    if (x.value.dtype() == Dtype::i64) continue;
    const Tensor grad = x.grad ? to(x.grad, Device::cpu) : zeros(x.value.shape(), Dtype::f64, Device::cpu);
    double largest = 0, worst = 0, squares = 0;
    std::string entry;
    for (int64_t i = 0; i < x.value.size(); ++i) {
      const double numeric = difference(f, cs, inputs, x, i, h), analytic = grad.data<double>()[i];
      largest = std::max(largest, std::abs(numeric));
      squares += analytic * analytic;
      const double error = std::isnan(numeric - analytic) ? HUGE_VAL : std::abs(numeric - analytic);
      if (error <= worst) continue;
      worst = error;
      entry = format_message("input {}, element {}: {:.9g} by differences, {:.9g} by backward", {k, i, numeric, analytic});
    }
    const double relative = largest > 0 && std::isfinite(worst) ? worst / largest : worst;
    if (relative > result.worst) {
      result.worst = relative;
      result.worst_at = entry;
    }
    result.least_norm = std::min(result.least_norm, std::sqrt(squares));
  }
  return result;
}

std::vector<DeviceCheck> check_gradients(
    const std::function<Tensor(const std::vector<Arg>&)>& f, const std::vector<Tensor>& inputs, double tolerance) {
  const SameRandomNumbers random;
  const CheckedFunction of_parameters = [&](const std::vector<Parameter>& x) {
    random.again();
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
