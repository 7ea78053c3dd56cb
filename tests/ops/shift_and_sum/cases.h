// Cases of the shift-and-sum, and its values and gradients.
#pragma once
#include "core/philox.h"
#include "ops/shift_and_sum/shift_and_sum.h"
#include "tests/ops/values.h"

namespace ricci {

using ShiftAndSum = Tensor (*)(const Arg&, const Arg&, const ShiftAndSumOptions&);

struct ShiftCase {
  int64_t b, c, heads, width, levels;
  double dropout = 0;
  bool drops_level_0 = true;

  int64_t d() const { return heads * width; }
  ShiftAndSumOptions options() const { return {heads, dropout, drops_level_0}; }
  Tensor v(Dtype dtype, Device device) const { return drawn({b, c, d()}, dtype, device, 1); }
  // Mostly between -1/2 and 1/2: sums of many levels do not grow.
  Tensor coef(Dtype dtype, Device device) const {
    const Tensor t = drawn({b, c, heads * levels}, Dtype::f64, Device::cpu, 2);
    multiply_by(t, 0.3);
    return to(convert(t, dtype), device);
  }
  Tensor dy(Dtype dtype, Device device) const { return drawn({b, c, d()}, dtype, device, 3); }
};

// y, dv and dcoef.
inline std::vector<Tensor> outcome_of(
    ShiftAndSum f, const ShiftCase& of, const std::vector<Tensor>& inputs, const Tensor& dy, uint64_t stream = 7) {
  set_random_state({3, stream});
  Tape tape;
  const Tensor v = tape.watch(inputs[0]), coef = tape.watch(inputs[1]);
  const Tensor y = f(v, coef, of.options());
  tape.backward({y}, {dy});
  return {y.detached(), tape.gradient_of(v), tape.gradient_of(coef)};
}

}  // namespace ricci
