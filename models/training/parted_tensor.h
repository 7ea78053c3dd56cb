// A tensor in several hands: each rank has some of its elements, or every rank has all. Rank 0 puts it together to write it to a file, and
// gives each rank its part of one that was read. Both go through the memory of the host, one tensor at a time.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/files/safetensors.h"
#include "core/range.h"
#include "cuda/ranks/ranks.h"

namespace ricci {

struct PartedTensor {
  std::string name;
  Shape shape;
  Dtype dtype = Dtype::f32;
  std::vector<std::pair<Range, Tensor>> mine;  // elements, and a tensor of that size, on any device
  std::vector<std::vector<Range>> of_ranks;    // the same ranges of every rank; empty if every rank has all
};

// Rank 0's is the tensor, on the CPU; the others' is empty.
Tensor gathered(Ranks& ranks, const PartedTensor& tensor);

// Fills what this rank has; whole: rank 0's tensor, on the CPU. Returns it, on every rank.
Tensor scatter(Ranks& ranks, const PartedTensor& tensor, const Tensor& whole);

// A tensor on any device, copied to the CPU when its turn to be written comes.
TensorSource source_of(const std::string& name, const Tensor& tensor);
// For a file that rank 0 writes. Every rank makes the same list of sources; the others then hand it over.
TensorSource source_of(Ranks& ranks, const PartedTensor& tensor);
void hand_over(std::vector<TensorSource> tensors);

}  // namespace ricci
