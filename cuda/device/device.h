// Devices and the memory on them. `cpu` and `cuda_emulated` are always available. `cuda` needs a build with the toolkit, a driver and a
// GPU.
#pragma once
#include <concepts>
#include <optional>
#include <string>
#include <vector>

#include "core/batch.h"
#include "core/tensor.h"

namespace ricci {

bool available(Device device);
// Why `device` cannot be used, in one line; empty if it can.
const char* why_not(Device device);
void require(Device device);            // error: why_not's text
Device parse_device(const char* name);  // error: unknown name, device not available
Dtype parse_dtype(const char* name);    // one of kFloatingDtypes; error: an unknown name

// The one GPU that this process uses: `index` modulo the number of GPUs that it sees. Call it before anything else asks for cuda.
void use_gpu(int index);
std::string gpu_in_use();  // its bus address, such as "0000:3b:00.0"; empty if cuda is not available

void synchronize(Device device);  // waits until everything launched on it has run

// True if the environment variable has a value other than 0. For switches such as RICCI_SYNC=1.
bool is_switched_on(const char* variable);

// A copy on a different device, or the tensor itself if it is already there. Not recorded on a tape.
Tensor to(const Tensor& t, Device device);
inline Tensor to_host(const Tensor& t) { return to(t, Device::cpu); }
Batch to(const Batch& batch, Device device);

// dst = src, byte for byte; both have the same number of bytes, on any two devices. It is a write to dst at the caller's line
// (Tensor::written): a tape that kept dst notices it. Errors: a tensor is empty, the lengths differ.
void copy(const Tensor& dst, const Tensor& src, const char* file = __builtin_FILE(), int line = __builtin_LINE());

Tensor zeros(const Shape& shape, Dtype dtype, Device device, CallSite caller = {});
inline Tensor zeros_like(const Tensor& t, CallSite caller = {}) { return zeros(t.shape(), t.dtype(), t.device(), caller); }

// Independent standard normal numbers. They depend on shape and seed, not on the device. f32 and bf16 values are the f64 ones, rounded.
// Errors: the dtype is not floating-point, the device is not available.
Tensor randn(const Shape& shape, uint64_t seed, Dtype dtype = Dtype::f32, Device device = Device::cpu);

template <class T>
concept Element = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, int64_t>;

// A copy of the values, row by row: tensor_of(std::vector<float>{1, 2, 3, 4}, {2, 2}).
// Errors: the number of values does not match the shape, the device is not available.
template <Element T> Tensor tensor_of(const std::vector<T>& values, const Shape& shape, Device device = Device::cpu);

// Value i of a tensor on any device, or its only one, as a double (even for i64). For logging and tests.
double item(const Tensor& t, std::optional<int64_t> i = {});

}  // namespace ricci
