// The best speeds of a device, measured: the floor of a step is its work at these.
#pragma once
#include "core/tensor.h"

namespace ricci {

struct Peaks {
  double flops = 0;  // per second
  double bytes = 0;  // read and written per second, of tensors that are too large for the caches
};

// FLOPs: on the CPU, in f32 and f64, multiply-adds on registers, on all threads; on a GPU, and in bf16, a large square matrix
// product. Bytes: y += x. The best of several times. On cuda_emulated all sizes are tiny and no measure of a GPU.
Peaks measured_peaks(Device device, Dtype dtype);

}  // namespace ricci
