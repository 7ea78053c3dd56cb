// The device's work of a training step as a CUDA graph: thousands of launches in one call.
#pragma once
#include <functional>
#include <vector>

#include "cuda/device/graph.h"
#include "models/layers/inputs.h"

namespace ricci {

// A micro-batch as a step reads it, on the device.
struct WeightedInputs {
  Inputs inputs;
  Tensor weight;  // f64 scalar: of the mean of the micro-batch in the mean of the step
};

// The first step runs as it always does, which loads and allocates what is made once; the second is measured, and the third
// recorded (cuda/device/graph.h). From then on a step is one launch. The inputs of all of these are the same tensors,
// overwritten at every step, and so are the results: what a step computes has the bits that it has without a graph.
class StepGraph {
 public:
  explicit StepGraph(Device device) : graph_(device) {}

  // What `compute` returns. It is the same at every call, reads no number that differs from step to step but in tensors that
  // were there before, and leaves nothing behind but in such tensors.
  // Errors: inputs of another shape, what Graph::record refuses.
  using Compute = std::function<std::vector<Tensor>(const std::vector<WeightedInputs>&)>;
  const std::vector<Tensor>& run(const std::vector<WeightedInputs>& inputs, const Compute& compute);

 private:
  void take_inputs(const std::vector<WeightedInputs>& inputs);

  Graph graph_;
  std::vector<WeightedInputs> inputs_;
  std::vector<Tensor> results_;
  int64_t steps_ = 0;
};

}  // namespace ricci
