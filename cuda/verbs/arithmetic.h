// The few operations that the tape itself needs, on every device. The tape calls them during the backward pass, so none is recorded. A
// change of y is a write at the caller's line (Tensor::written), so a tape that kept y detects the change.
#pragma once
#include <initializer_list>

#include "core/tensor.h"

namespace ricci {

// y += x, with the same shape and dtype, but x can be bf16 if y is f32.
void add_to(const Tensor& y, const Tensor& x, const char* file = __builtin_FILE(), int line = __builtin_LINE());
// y = value
void fill(const Tensor& y, double value, const char* file = __builtin_FILE(), int line = __builtin_LINE());
// y_i = values[i], for at most 8 values. The values are kernel arguments: a copy from the CPU would wait for the device.
void fill(const Tensor& y_i, std::initializer_list<double> values, const char* file = __builtin_FILE(), int line = __builtin_LINE());
// y *= factor
void multiply_by(const Tensor& y, double factor, const char* file = __builtin_FILE(), int line = __builtin_LINE());

// Undoes a broadcast: sums x back to `shape`. `dtype` is x's, or f32 for a bf16 x to avoid rounding.
Tensor sum_to(const Tensor& x, const Shape& shape, Dtype dtype);
inline Tensor sum_to(const Tensor& x, const Shape& shape) { return sum_to(x, shape, x.dtype()); }
Tensor convert(const Tensor& x, Dtype dtype);  // the values of x, rounded to a different floating-point dtype
int64_t count_nonfinite(const Tensor& x);      // the number of NaN or infinite elements
// The index of the largest element in each row of x [.. c], the first one on a tie, as i64 [r]; 0 if that element is NaN.
Tensor largest_in_rows(const Tensor& x);

}  // namespace ricci
