// The vectors that a model computes for a text.
#pragma once
#include <cstdint>
#include <vector>

#include "models/model.h"

namespace ricci {

// The output of every stack, one vector per complete cell, without stacks for cells longer than the text.
struct Representation {
  int64_t tokens = 1;  // per cell
  Tensor h_bmd;
};
std::vector<Representation> representations(const Model& model, const Batch& batch);

}  // namespace ricci
