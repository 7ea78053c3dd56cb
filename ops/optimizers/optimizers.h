// The tensors and numbers that optimizers work on, and the norm of their gradients. One call of update_parameters (adamw.h, sgd.h) updates
// all parameters in few launches and one pass over memory; a launch per parameter would take longer than the arithmetic.
#pragma once
#include <array>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace ricci {

// One parameter and its state. m and v are f64 if value is, else f32.
struct OptimizerTensor {
  Tensor value{}, grad{};  // grad has the dtype of value, f32 with a master; without grad the update leaves the tensor unchanged
  Tensor m{}, v{};         // mean of the gradient (momentum), mean of its square; empty if the rule does not use it
  Tensor master{};         // f32, only for a bf16 value: the weights that are updated; bf16 would round small steps away
  double weight_decay = 0;
  double lr_factor = 1;               // multiplies the learning rate of the step
  std::string_view name{};            // for messages
  std::vector<int64_t> row_blocks{};  // the rows of each matrix in the tensor, for a rule that updates full matrices (muon.h)
};

// The learning rate of a step and AdamW's bias corrections, computed once per step.
struct Rates {
  double learning_rate;
  double step_size;              // learning_rate / (1 - beta1^step)
  double bias_correction2_sqrt;  // sqrt(1 - beta2^step)
};

// The numbers that differ between steps, on the device of the tensors. A recorded step (cuda/device/graph.h) is launched again with the
// same arguments and reads the new numbers from these tensors.
struct StepNumbers {
  Tensor rates{};           // f64 [3]: the Rates
  Tensor gradient_scale{};  // f64 []: multiplies every gradient, for clipping; if it is not finite, nothing is updated
};

// The Euclidean norm of all elements of all tensors together (any floating-point dtypes, one device), an f64 scalar on their device, summed
// in f64 in a fixed order. The norm is NaN or infinite if an element is. Empty tensors are ignored. Error: the tensors are on different
// devices.
Tensor gradient_norm(const std::vector<Tensor>& tensors);

// The factor of gradient clipping: clip / norm if the norm exceeds clip and clip is not 0, else 1. If norm or loss is not finite, the
// factor is NaN, and the update does nothing. Errors: norm or loss is not an f64 scalar, or the two are on different devices.
Tensor clip_factor(const Tensor& norm, double clip, const Tensor& loss);

// ---- For the rules
// The moments that a rule uses.
struct Moments {
  bool m = false, v = false;
};

// Errors: a grad, moment, master or step number has the wrong shape, dtype or device:
//   adamw: grad of blocks.0.fc.bias is f32 [4] on cpu, expected f32 [3] on cpu
// A tensor without a name is identified by its index, such as "tensor 1".
void check_tensors(const char* op, const std::vector<OptimizerTensor>& tensors, const StepNumbers& now, Moments moments);

// Ends an update. Marks the values that have a grad as written at the caller's line, so a tape that kept such a value detects the change.
// Adds time and bytes to `row` of the trace.
void end_update(const char* row, const std::vector<OptimizerTensor>& tensors, const char* file, int line);

}  // namespace ricci
