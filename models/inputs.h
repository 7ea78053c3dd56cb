// What every family of models reads.
#pragma once
#include "core/tensor.h"

namespace ricci {

struct Inputs {
  Tensor ids_bc;       // i64 [b c]: tokens
  Tensor targets{};    // i64: of a language model [b c], of a classifier [b]; -1: does not count. Only the loss reads them
  Tensor lengths_b{};  // i64 [b], 0 .. c: what stands behind is padding, which no position hears; empty: there is none
};

}  // namespace ricci
