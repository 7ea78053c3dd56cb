// Checks that a backward function is the derivative of its forward function. Every element of every input is changed by +h and -h, in f64,
// and the change of <c, f(x)> is compared with the gradient. c is random. The sum of a softmax's outputs is constant, so with c = 1 a
// gradient with any wrong factor would pass.
#pragma once
#include <concepts>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "autograd/arg.h"

namespace ricci {

using CheckedFunction = std::function<std::vector<Tensor>(const std::vector<Parameter>& inputs)>;

struct GradCheck {
  double worst = 0;              // the largest |numeric - analytic| of an input, divided by its largest |numeric|; infinite for NaN
  std::string worst_at;          // "input 1, element 17: 0.25 by differences, 0.5 by backward"
  double least_norm = 0;         // the smallest norm of an input's gradient; 0 proves nothing
  std::vector<std::string> ops;  // the names of the recorded ops
};

// `inputs` are f64 or i64, all on one device. f must return the same values for the same inputs.
GradCheck gradcheck(const CheckedFunction& f, std::vector<Parameter> inputs, double h = 1e-5);

struct DeviceCheck {
  Device device;
  GradCheck result;
};

// The largest accepted error of a gradient, relative to the largest gradient of the same input.
inline constexpr double kGradientTolerance = 1e-6;

// Checks the gradients of your own function on every device of this machine: cpu, cuda_emulated and, with a GPU, cuda.
//   check_gradients([](const Arg& x_rc, const Arg& w_c) { return softmax(x_rc * w_c); }, randn({3, 5}, 1), randn({5}, 2));
// The emulator checks kernels without a GPU. Floating-point inputs are copied as f64. Every call of f samples the same random numbers, so f
// can contain dropout. Errors name the device: an element of a gradient is wrong, a gradient is zero everywhere (this proves nothing), f
// throws an error.
std::vector<DeviceCheck> check_gradients(const std::function<Tensor(const std::vector<Arg>& inputs)>& f, const std::vector<Tensor>& inputs,
    double tolerance = kGradientTolerance);

template <class F, std::convertible_to<Tensor>... Inputs>
requires(sizeof...(Inputs) > 0) std::vector<DeviceCheck> check_gradients(const F& f, const Inputs&... inputs) {
  const auto of_list = [&]<size_t... I>(std::index_sequence<I...>) {
    return check_gradients(
        std::function<Tensor(const std::vector<Arg>&)>([&f](const std::vector<Arg>& x) { return Tensor(f(x[I]...)); }), {inputs...});
  };
  return of_list(std::index_sequence_for<Inputs...>());
}

}  // namespace ricci
