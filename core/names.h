// The names of devices and of element types.
#pragma once
#include "core/choice.h"
#include "core/tensor.h"

namespace ricci {

constexpr auto choices(Device) { return std::array{"cpu", "cuda", "cuda_emulated"}; }
constexpr auto choices(Dtype) { return std::array{"f32", "f64", "bf16", "i64"}; }

}  // namespace ricci
