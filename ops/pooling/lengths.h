// Sequence lengths without padding, for ops that must not read padding.
#pragma once
#include "core/dtype.h"
#include "core/error.h"
#include "core/tensor.h"
#include "cuda/device/device.h"
#include "cuda/device/graph.h"

namespace ricci {

// Throws if a length is outside 0 .. context. Not checked on cuda, to avoid waiting for the GPU, or while a graph is recorded.
inline void check_lengths(const char* op, const Tensor& lengths_b, int64_t context) {
  if (!lengths_b || lengths_b.device() == Device::cuda || recording_graph()) return;
  const Tensor read = to(lengths_b.detached(), Device::cpu);
  for (int64_t b = 0; b < read.size(); ++b)
    if (const int64_t length = read.data<int64_t>()[b]; length < 0 || length > context)
      fail("{}: length {} at [{}] of lengths_b is outside 0 .. {}", {op, length, b, context});
}

// Lengths for kernels. Without lengths, no position is padding.
struct Lengths {
  const int64_t* length_b = nullptr;
  int64_t context = 0;
  HD int64_t length_of(int64_t b) const {
    if (!length_b) return context;
    return between<int64_t>(0, length_b[b], context);
  }
};

inline Lengths lengths_of(const Tensor& lengths_b, int64_t context) { return {lengths_b ? lengths_b.data<int64_t>() : nullptr, context}; }

}  // namespace ricci
