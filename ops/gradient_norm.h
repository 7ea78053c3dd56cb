#pragma once
#include <vector>

#include "core/tensor.h"

namespace ricci {

// The Euclidean norm of all elements of all tensors together (any floating-point dtypes, one device), summed in f64 in a
// fixed order. NaN or infinite when an element is. Empty tensors count as zeros. Waits for the device.
// Error: tensors on different devices.
double gradient_norm(const std::vector<Tensor>& tensors);

}  // namespace ricci
