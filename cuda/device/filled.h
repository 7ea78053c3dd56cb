// Tensors that are made with their values: random ones, and those of one's own data.
#pragma once
#include <concepts>
#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace ricci {

// Independent standard normal numbers: the same for the same shape and seed, whatever the device. f32 and bf16 values are those of
// f64, rounded. Errors: a dtype that is not floating, a device that is not there.
Tensor randn(const Shape& shape, uint64_t seed, Dtype dtype = Dtype::f32, Device device = Device::cpu);

template <class T>
concept Element = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, int64_t>;

// A copy of the values, row by row: tensor_of(std::vector<float>{1, 2, 3, 4}, {2, 2}).
// Errors: another number of values than the shape has, a device that is not there.
template <Element T> Tensor tensor_of(const std::vector<T>& values, const Shape& shape, Device device = Device::cpu);

}  // namespace ricci
