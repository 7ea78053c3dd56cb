// The sums of a step's gradients, on one rank: over its own leaves here, over all ranks in GradientExchange.
#pragma once
#include <cstdint>
#include <vector>

#include "autograd/gradient_layout.h"

namespace ricci {

// Adds the gradients of a rank's leaves along the tree of a step. The gradients of a leaf are in Parameter::grad when it ends; those of
// earlier leaves wait in as many sums as the tree has open nodes, at most log2 of the leaves. What is added is what the tape adds: f32, or
// f64 for f64 parameters.
class LeafSums {
 public:
  // `own`: the leaves of this rank, of `all` in the step.
  LeafSums(std::vector<Parameter*> trained, int64_t all, Range own);

  size_t parameters() const { return trained_.size(); }
  // Before a step.
  void begin();
  // After each leaf but the last: takes its gradients away. Error: a parameter has a gradient in one leaf and none in another.
  void end_leaf();
  // In or after the last backward of the last leaf, for each parameter, when nothing more is added to its gradient: adds what waits for it.
  // Parameter::grad is then the sum of the last subtree. Errors: as for end_leaf.
  void finish(size_t parameter);
  // The sums of the subtrees in front of the last: how many there are, and one of them for a parameter, handed over after the last leaf
  // has begun; empty: no gradient.
  size_t earlier() const;
  Tensor take_earlier(size_t subtree, size_t parameter);

 private:
  struct Node {
    Range leaves;
    std::vector<Tensor> sums;  // per parameter
  };
  bool joins(const Range& left, const Range& right) const;
  void add(Tensor& sum, const Range& its_leaves, const Tensor& more, const Range& leaves, size_t parameter) const;

  std::vector<Parameter*> trained_;
  int64_t all_;
  Range own_;
  int64_t leaf_ = 0;         // that is computed
  std::vector<Node> nodes_;  // whose leaves are done, in order
};

}  // namespace ricci
