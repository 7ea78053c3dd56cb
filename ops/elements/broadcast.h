#pragma once
#include "core/tensor.h"
#include "ops/shapes/strided.h"

namespace ricci {

// The shape that a and b have together: aligned at the innermost index, an extent of 1 repeats (as in NumPy).
// Error: extents that differ and are not 1; op names the message.
Shape broadcast_shape(const char* op, const Shape& a, const Shape& b);

// Strides to read tensors of these shapes with when they are broadcast to `shape`.
Strided<1> broadcast_strides(const Shape& x, const Shape& shape);
Strided<2> broadcast_strides(const Shape& a, const Shape& b, const Shape& shape);

// factor * x, repeated to fill `shape`. Not recorded on a tape.
Tensor broadcast(const Tensor& x, const Shape& shape, double factor = 1);

}  // namespace ricci
