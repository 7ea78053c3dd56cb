// A training step as one launch of a CUDA graph (cuda/device/graph.h). A small model's step consists of hundreds of kernels, and each takes
// less time than its launch. The first step runs normally and allocates everything; the second is measured, and the third is recorded.
// Every step overwrites the same input and result tensors. The results are bitwise identical to those without a graph.
#pragma once
#include <functional>
#include <vector>

#include "core/batch.h"
#include "core/philox.h"
#include "cuda/device/graph.h"

namespace ricci {

class StepGraph {
 public:
  explicit StepGraph(Device device) : graph_(device), first_stream_({}, Dtype::i64, device) {}

  // Returns a state that gives the same random numbers but reads its first stream from device memory: a recorded kernel repeats its
  // arguments.
  RandomState in_memory(const RandomState& random) const;

  // Returns the results of compute(batches, weights). compute must do the same work at every call: values that change between steps, and
  // results that outlive the call, must be in tensors that exist before the call. Errors: batches have the wrong shape; as for
  // Graph::record.
  using Compute = std::function<std::vector<Tensor>(const std::vector<Batch>&, const std::vector<Tensor>& weights)>;
  const std::vector<Tensor>& run(const std::vector<Batch>& batches, const std::vector<Tensor>& weights, const Compute& compute);
  int64_t bytes() const { return graph_.bytes(); }  // size of the graph's memory block; 0 before the second step

 private:
  void take(const std::vector<Batch>& batches, const std::vector<Tensor>& weights);

  Graph graph_;
  Tensor first_stream_;
  std::vector<Batch> batches_;
  std::vector<Tensor> weights_, results_;
  int64_t steps_ = 0;
};

}  // namespace ricci
