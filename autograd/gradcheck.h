// Is a backward the derivative of its forward? Every element of every input is moved by +-h in f64 and the change of <c, f(x)> is compared
// with the gradient of backward. c is random: with a sum (all ones) a softmax would pass with any factor.
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
  double worst = 0;              // largest |numeric - analytic| over an input, relative to that input's largest |numeric|; infinite for NaN
  std::string worst_at;          // "input 1, element 17: 0.25 by differences, 0.5 by backward"
  double least_norm = 0;         // the smallest Euclidean norm among the inputs' gradients; 0 would prove nothing
  std::vector<std::string> ops;  // names the tape saw
};

// `inputs` are f64 (i64 inputs stay as they are), all on one device. f must give the same value for the same inputs.
GradCheck gradcheck(const CheckedFunction& f, std::vector<Parameter> inputs, double h = 1e-5);

struct DeviceCheck {
  Device device;
  GradCheck result;
};

// Largest error of a gradient that passes, relative to the largest gradient of the same input.
inline constexpr double kGradientTolerance = 1e-6;

// The gradients of a function of one's own, checked on every device of this machine:
//   check_gradients([](const Arg& x_rc, const Arg& w_c) { return softmax(x_rc * w_c); }, randn({3, 5}, 1), randn({5}, 2));
// On the emulator this runs the kernels that a GPU would run, so that no GPU is needed to check them.
// It is gradcheck() of f on each device that is there: cpu, cuda_emulated and, with a GPU, cuda. Floating-point inputs are copied as f64,
// i64 inputs stay as they are. Every call of f draws the same random numbers, so that dropout may be a part of it.
// Errors, each with the device: a gradient that is wrong, and in which element; a gradient that is zero everywhere, which would
// prove nothing; what f throws.
std::vector<DeviceCheck> check_gradients(const std::function<Tensor(const std::vector<Arg>& inputs)>& f, const std::vector<Tensor>& inputs,
    double tolerance = kGradientTolerance);

// The same for a function whose arguments are given one by one.
template <class F, std::convertible_to<Tensor>... Inputs>
requires(sizeof...(Inputs) > 0) std::vector<DeviceCheck> check_gradients(const F& f, const Inputs&... inputs) {
  const auto of_list = [&]<size_t... I>(std::index_sequence<I...>) {
    return check_gradients(
        std::function<Tensor(const std::vector<Arg>&)>([&f](const std::vector<Arg>& x) { return Tensor(f(x[I]...)); }), {inputs...});
  };
  return of_list(std::index_sequence_for<Inputs...>());
}

}  // namespace ricci
