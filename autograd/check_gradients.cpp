#include "autograd/check_gradients.h"

#include "autograd/random.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {
namespace {

std::vector<Parameter> inputs_on(Device device, const std::vector<Tensor>& inputs) {
  std::vector<Parameter> all;
  for (const Tensor& input : inputs) {
    const Tensor x = input.dtype() == Dtype::i64 ? input.detached() : convert(input.detached(), Dtype::f64);
    all.push_back({to(x, device), {}, format_message("input {}", {all.size()})});
  }
  return all;
}

// Goes back to the random numbers that come next on this thread now, and once more at its end.
struct SameRandomNumbers {
  RandomState state = random_state();
  void again() const { set_random_state(state); }
  ~SameRandomNumbers() { again(); }
};

}  // namespace

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
