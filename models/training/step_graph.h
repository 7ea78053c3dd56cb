// A training step as one launch of a CUDA graph (cuda/device/graph.h), because a small model's step is hundreds of kernels, each shorter
// than its launch. The first step runs as it always does, which loads and allocates what is made once; the second is measured, and the
// third is recorded. All steps read the same input tensors, which are overwritten at every step, and so are the results. A step has the
// bits that it has without a graph.
#pragma once
#include <functional>
#include <vector>

#include "autograd/random.h"
#include "cuda/device/graph.h"
#include "models/layers/inputs.h"

namespace ricci {

class StepGraph {
 public:
  explicit StepGraph(Device device) : graph_(device), first_stream_({}, Dtype::i64, device) {}

  // The same random numbers. Their streams are counted from a number in the device's memory, because a recorded kernel repeats its
  // arguments.
  RandomState in_memory(const RandomState& random) const;

  // Returns the results of `compute`, which does the same at every call, reads numbers that differ from step to step only from tensors
  // that were there before, and writes lasting results only to such tensors. Errors: inputs of another shape, as for Graph::record.
  using Compute = std::function<std::vector<Tensor>(const std::vector<WeightedInputs>&)>;
  const std::vector<Tensor>& run(const std::vector<WeightedInputs>& inputs, const Compute& compute);
  int64_t bytes() const { return graph_.bytes(); }  // the graph's block; 0 before the second step

 private:
  void take_inputs(const std::vector<WeightedInputs>& inputs);

  Graph graph_;
  Tensor first_stream_;
  std::vector<WeightedInputs> inputs_;
  std::vector<Tensor> results_;
  int64_t steps_ = 0;
};

}  // namespace ricci
