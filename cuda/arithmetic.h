// The few sums that the tape itself needs, on every device. Shapes as noted; nothing here is recorded.
#pragma once
#include "core/tensor.h"

namespace ricci {

void add_to(const Tensor& y, const Tensor& x);               // y += x, same shape and dtype; an f32 y takes a bf16 x too
void fill(const Tensor& y, double value);                    // y = value
void multiply_by(const Tensor& y, double factor);            // y *= factor
Tensor sum_to(const Tensor& x, const Shape& shape);          // sums over what broadcasting `shape` to x's shape repeated
Tensor convert(const Tensor& x, Dtype dtype);                // the same values, rounded to another floating-point dtype
int64_t count_nonfinite(const Tensor& x);                    // how many elements are NaN or infinite

}  // namespace ricci
