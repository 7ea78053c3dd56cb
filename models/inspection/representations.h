// What the blocks of a model make of a text, at each scale that has blocks of its own: for people to look at.
#pragma once
#include <cstdint>

#include "core/tensor.h"

namespace ricci {

struct Representation {
  int64_t tokens = 1;  // of a cell
  Tensor h_bmd;        // what the blocks give, one vector for each whole cell
};

}  // namespace ricci
