// The gradient of a step that is computed in several parts.
#pragma once
#include <vector>

#include "autograd/arg.h"
#include "core/memory/memory.h"

namespace ricci {

// Parameter::grad has the dtype of its value, and += into bf16 rounds at every part: with many parts the late ones are lost.
// This holds the sum of bf16 gradients in f32 in between and rounds it once. Other gradients stay where they are.
//   GradientSum sum(parameters);
//   for (part) tape.backward(loss, weight), sum.take();
//   sum.give();
class GradientSum final : public MemoryHolder {
 public:
  explicit GradientSum(std::vector<Parameter*> parameters);
  void take();  // adds every bf16 Parameter::grad, and clears it
  void give();  // puts the sums back, rounded, and forgets them
  void each_held(const Visit& visit) const override;

 private:
  std::vector<Parameter*> parameters_;  // those of bf16
  std::vector<Tensor> sums_;            // f32; empty: no gradient came
};

}  // namespace ricci
