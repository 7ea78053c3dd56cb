// Devices and the memory on them. `cpu` and `cuda_emulated` are always there; `cuda` when this binary was built with the
// toolkit and finds a driver and a GPU when it runs.
#pragma once
#include <concepts>
#include <vector>

#include "core/tensor.h"

namespace ricci {

bool available(Device device);
// Why `device` cannot be used, in one line; empty when it can.
const char* why_not(Device device);
void require(Device device);            // error: why_not's text
Device parse_device(const char* name);  // error: unknown name, device not available
Dtype parse_dtype(const char* name);    // one of kFloatingDtypes; error: another name

void synchronize(Device device);  // waits until everything launched on it has run

// True if the environment variable has a value other than 0. Switches such as RICCI_SYNC=1 are read by it.
bool is_switched_on(const char* variable);

// The same elements on another device; the tensor itself when it is there already. Not recorded on a tape.
Tensor to(const Tensor& t, Device device);
inline Tensor to_host(const Tensor& t) { return to(t, Device::cpu); }

// dst = src, byte for byte; both have the same number of bytes, each may be on any device. It counts as a write to dst at the
// caller's line (Tensor::written): a tape that kept dst notices at its backward. Errors: an empty tensor, another length.
void copy(const Tensor& dst, const Tensor& src, const char* file = __builtin_FILE(), int line = __builtin_LINE());

Tensor zeros(const Shape& shape, Dtype dtype, Device device, CallSite asker = {});
inline Tensor zeros_like(const Tensor& t, CallSite asker = {}) { return zeros(t.shape(), t.dtype(), t.device(), asker); }

// Independent standard normal numbers: the same for the same shape and seed, whatever the device. f32 and bf16 values are the f64
// ones, rounded. Errors: a dtype that is not floating, a device that is not there.
Tensor randn(const Shape& shape, uint64_t seed, Dtype dtype = Dtype::f32, Device device = Device::cpu);

template <class T>
concept Element = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, int64_t>;

// A copy of the values, row by row: tensor_of(std::vector<float>{1, 2, 3, 4}, {2, 2}).
// Errors: another number of values than the shape has, a device that is not there.
template <Element T> Tensor tensor_of(const std::vector<T>& values, const Shape& shape, Device device = Device::cpu);

// Value i of a tensor on any device, as a double (i64 included); for logging and tests.
double item(const Tensor& t, int64_t i = 0);

}  // namespace ricci
