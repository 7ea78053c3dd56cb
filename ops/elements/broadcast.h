#pragma once
#include "core/tensor.h"
#include "ops/shapes/strided.h"

namespace ricci {

// The common shape of a and b, as in NumPy: shapes are aligned at the innermost index, and an extent of 1 or a missing index repeats.
// Error: two extents differ and neither is 1. The message begins with `op`.
Shape broadcast_shape(const char* op, const Shape& a, const Shape& b);

// The stride of x, broadcast to `shape`, along index d: 0 if x repeats there.
inline int64_t broadcast_stride(const Shape& shape, int d, const Shape& x) {
  const int index = d - shape.rank() + x.rank();
  if (index < 0 || x[index] == 1) return 0;
  int64_t stride = 1;
  for (int inner = index + 1; inner < x.rank(); ++inner) stride *= x[inner];
  return stride;
}
// Strides to traverse all tensors of these shapes together as if they had the shape `shape`.
template <class... Shapes> Strided<sizeof...(Shapes)> broadcast_strides(const Shape& shape, const Shapes&... xs) {
  Strided<sizeof...(Shapes)> s;
  for (int d = 0; d < shape.rank(); ++d) s.push(shape[d], {broadcast_stride(shape, d, xs)...});
  return s;
}

// factor * x, repeated to fill `shape`. Not recorded on a tape.
Tensor broadcast(const Tensor& x, const Shape& shape, double factor = 1);

}  // namespace ricci
