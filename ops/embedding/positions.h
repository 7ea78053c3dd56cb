#pragma once
#include "core/tensor.h"

namespace ricci {

// The fixed positions of the transformer (Vaswani et al. 2017, section 3.5), [context width], computed in f64:
//   pe[t, 2i] = sin(t w_i),  pe[t, 2i+1] = cos(t w_i),  w_i = 10000^(-2i/width)
// A constant. Of an odd width the last column is a sine.
Tensor sinusoidal_positions(int64_t context, int64_t width, Dtype dtype, Device device);

}  // namespace ricci
