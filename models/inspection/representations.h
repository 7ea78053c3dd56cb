// The vectors that a model computes for a text.
#pragma once
#include <cstdint>
#include <vector>

#include "models/model.h"

namespace ricci {

// The output of a stack: one vector per complete cell. Stacks for cells longer than the text are omitted.
struct Representation {
  int64_t tokens = 1;  // per cell
  Tensor h_bmd;
};
std::vector<Representation> representations(const Model& model, const Batch& batch);

}  // namespace ricci
