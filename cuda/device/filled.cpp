#include "cuda/device/filled.h"

#include <algorithm>

#include "core/dims.h"
#include "core/error.h"
#include "core/random.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {

Tensor randn(const Shape& shape, uint64_t seed, Dtype dtype, Device device) {
  if (dtype == Dtype::i64) fail("randn: {} is no floating-point dtype, expected {}", {name_of(dtype), kFloatingDtypes});
  const Tensor values(shape, Dtype::f64);
  fill_normal(values.data<double>(), values.size(), 0.0, 1.0, Philox{seed, 0});
  return to(convert(values, dtype), device);
}

template <Element T> Tensor tensor_of(const std::vector<T>& values, const Shape& shape, Device device) {
  if (static_cast<int64_t>(values.size()) != shape.size()) fail("tensor_of: {} values for shape {}", {values.size(), show(shape)});
  const Tensor t(shape, dtype_of<T>);
  std::copy(values.begin(), values.end(), t.data<T>());
  return to(t, device);
}

template Tensor tensor_of(const std::vector<float>&, const Shape&, Device);
template Tensor tensor_of(const std::vector<double>&, const Shape&, Device);
template Tensor tensor_of(const std::vector<int64_t>&, const Shape&, Device);

}  // namespace ricci
