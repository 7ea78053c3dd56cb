#pragma once
#include <vector>

#include "core/tensor.h"

namespace ricci {

// The Euclidean norm of all elements of all tensors together (any floating-point dtypes, one device), an f64 scalar on their
// device, summed in f64 in a fixed order. NaN or infinite when an element is. Empty tensors count as zeros.
// Error: tensors on different devices.
Tensor gradient_norm(const std::vector<Tensor>& tensors);

// The factor of gradient clipping for every gradient: clip / norm where the norm exceeds clip (never if clip is 0), otherwise 1; NaN, with
// which an update does nothing, where norm or loss is not finite. f64 scalars. Errors: anything else, scalars on
// different devices.
Tensor clip_factor(const Tensor& norm, double clip, const Tensor& loss);

}  // namespace ricci
