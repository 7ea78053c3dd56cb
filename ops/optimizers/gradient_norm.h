#pragma once
#include <vector>

#include "core/tensor.h"

namespace ricci {

// The Euclidean norm of all elements of all tensors together (any floating-point dtypes, one device), an f64 scalar on their
// device, summed in f64 in a fixed order. NaN or infinite when an element is. Empty tensors count as zeros.
// Error: tensors on different devices.
Tensor gradient_norm(const std::vector<Tensor>& tensors);

// The same in two halves, for tensors in several hands. A tensor is cut into chunks of kNormChunk elements, the last may be
// shorter. sums[first[k]] and what follows it become the sums of squares of the chunks of tensors[k]; an empty tensor has none.
// `sums`: f64, on the device of the tensors. The norm of all is the one of all chunks in the order of the whole tensors.
inline constexpr int64_t kNormChunk = 16384;
inline int64_t norm_chunks_of(int64_t elements) { return (elements + kNormChunk - 1) / kNormChunk; }
void chunk_sums(const std::vector<Tensor>& tensors, const std::vector<int64_t>& first, const Tensor& sums);
Tensor norm_of_chunks(const Tensor& sums);  // the root of their sum, added in a fixed order

// The factor of gradient clipping for every gradient: clip / norm where the norm exceeds clip (never if clip is 0), otherwise 1; NaN, with
// which an update does nothing, where norm or loss is not finite. f64 scalars. Errors: anything else, scalars on
// different devices.
Tensor clip_factor(const Tensor& norm, double clip, const Tensor& loss);

}  // namespace ricci
