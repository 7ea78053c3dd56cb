// The tensors and numbers that the update kernels of optimizers work on.
#pragma once
#include <array>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace ricci {

// One parameter and its state. m and v are f64 when value is, f32 otherwise.
struct OptimizerTensor {
  Tensor value{}, grad{};  // grad has the dtype of value, f32 beside a master; without grad the update leaves the tensor alone
  Tensor m{}, v{};         // mean of the gradient (momentum), mean of its square; each empty where the rule has none
  Tensor master{};         // f32, only beside a bf16 value: the weights that are updated, value being their rounding; may be empty
  double weight_decay = 0;
  std::string_view name{};  // for messages
};

// The numbers that differ from step to step. They are on the device of the tensors, so that a step that was recorded
// (cuda/device/graph.h) reads what holds when it is launched.
struct StepNumbers {
  Tensor rates{};           // f64 [3]: the Rates
  Tensor gradient_scale{};  // f64 []: every gradient is multiplied by it, for clipping; not finite: nothing is updated
};
enum { kLearningRate, kStepSize, kCorrection2 };  // kStepSize: corrected for the first moment, kCorrection2: of the root of the second
using Rates = std::array<double, 3>;

// The moments that a rule reads.
struct Moments {
  bool m = false, v = false;
};

// Errors: a grad, moment or master of another shape, dtype or device than it must have, and numbers alike:
//   adamw: grad of blocks.0.fc.bias is f32 [4] on cpu, expected f32 [3] on cpu
// A tensor without a name is called by its place: tensor 1.
void check_tensors(const char* op, const std::vector<OptimizerTensor>& tensors, const StepNumbers& now, Moments moments);

// The values that have a grad count as written at the caller's line: a tape that kept one will notice.
void mark_written(const std::vector<OptimizerTensor>& tensors, const char* file, int line);

}  // namespace ricci
