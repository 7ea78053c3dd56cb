// The few sums that the tape itself needs, on every device. Shapes as noted; nothing here is recorded.
#pragma once
#include <initializer_list>

#include "core/tensor.h"

namespace ricci {

void add_to(const Tensor& y, const Tensor& x);               // y += x, same shape and dtype; an f32 y takes a bf16 x too
void fill(const Tensor& y, double value);                    // y = value
// y_i = values[i], at most 8 of them. A kernel's arguments: unlike a copy from the CPU it does not wait for the device.
void fill(const Tensor& y_i, std::initializer_list<double> values);
void multiply_by(const Tensor& y, double factor);            // y *= factor
Tensor sum_to(const Tensor& x, const Shape& shape);          // sums over what broadcasting `shape` to x's shape repeated
Tensor convert(const Tensor& x, Dtype dtype);                // the same values, rounded to another floating-point dtype
int64_t count_nonfinite(const Tensor& x);                    // how many elements are NaN or infinite

}  // namespace ricci
