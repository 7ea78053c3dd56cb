// The gradients of a function of one's own, checked on every device of this machine:
//   check_gradients([](const Arg& x_rc, const Arg& w_c) { return softmax(x_rc * w_c); }, randn({3, 5}, 1), randn({5}, 2));
// On the emulator this runs the kernels that a GPU would run, so that no GPU is needed to check them.
#pragma once
#include <concepts>
#include <functional>
#include <utility>
#include <vector>

#include "autograd/gradcheck.h"

namespace ricci {

struct DeviceCheck {
  Device device;
  GradCheck result;
};

// Largest error of a gradient that passes, relative to the largest gradient of the same input.
inline constexpr double kGradientTolerance = 1e-6;

// gradcheck() of f on each device that is there: cpu, cuda_emulated and, with a GPU, cuda. Floating-point inputs are copied as f64,
// i64 inputs stay as they are. Every call of f draws the same random numbers, so that dropout may be a part of it.
// Errors, each with the device: a gradient that is wrong, and in which element; a gradient that is zero everywhere, which would
// prove nothing; what f throws.
std::vector<DeviceCheck> check_gradients(const std::function<Tensor(const std::vector<Arg>& inputs)>& f, const std::vector<Tensor>& inputs,
    double tolerance = kGradientTolerance);

// The same for a function of so many arguments.
template <class F, std::convertible_to<Tensor>... Inputs>
requires(sizeof...(Inputs) > 0) std::vector<DeviceCheck> check_gradients(const F& f, const Inputs&... inputs) {
  const auto of_list = [&]<size_t... I>(std::index_sequence<I...>) {
    return check_gradients(
        std::function<Tensor(const std::vector<Arg>&)>([&f](const std::vector<Arg>& x) { return Tensor(f(x[I]...)); }), {inputs...});
  };
  return of_list(std::index_sequence_for<Inputs...>());
}

}  // namespace ricci
