// The highest measured speeds of a device. At these speeds, the work of a step takes the least possible time.
#pragma once
#include "core/tensor.h"

namespace ricci {

struct Peaks {
  double flops = 0;  // per second
  double bytes = 0;  // bytes read and written per second, for tensors that are too large for the caches
};

// FLOPs: on the CPU, in f32 and f64, multiply-adds in registers, on all threads; on a GPU, and in bf16, a large square matrix product.
// Bytes: y += x. The best of a few runs is returned. On cuda_emulated, all sizes are tiny, and the result does not describe a GPU.
Peaks measured_peaks(Device device, Dtype dtype);

}  // namespace ricci
