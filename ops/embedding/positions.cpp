// pe[t, 2i] = sin(t w_i),  pe[t, 2i+1] = cos(t w_i),  w_i = 10000^(-2i/width)
#include "ops/embedding/positions.h"

#include <cmath>

#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {

Tensor sinusoidal_positions(int64_t context, int64_t width, Dtype dtype, Device device) {
  const Tensor pe({context, width}, Dtype::f64);
  double* out = pe.data<double>();
  for (int64_t d = 0; d < width; ++d) {
    const double w = std::pow(10000.0, -static_cast<double>(d / 2 * 2) / static_cast<double>(width));
    for (int64_t t = 0; t < context; ++t) {
      const double angle = static_cast<double>(t) * w;
      out[t * width + d] = d % 2 ? std::cos(angle) : std::sin(angle);
    }
  }
  return to(convert(pe, dtype), device);
}

}  // namespace ricci
