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
// The reason why `device` cannot be used, in one line; empty if `device` can be used.
const char* why_not(Device device);
void require(Device device);            // throws the text of why_not, if any
Device parse_device(const char* name);  // errors: the name is unknown, the device is not available
Dtype parse_dtype(const char* name);    // one of kFloatingDtypes; error: the name is unknown

// Selects the one GPU that this process uses: `index` modulo the number of GPUs that the process sees. Call it before anything else uses
// cuda.
void use_gpu(int index);
std::string gpu_in_use();  // the GPU's bus address, such as "0000:3b:00.0"; empty if cuda is not available

void synchronize(Device device);  // waits until everything launched on the device has run

// True if the environment variable has a value other than 0. Used for switches such as RICCI_SYNC=1.
bool is_switched_on(const char* variable);

// A copy on `device`, or the tensor itself if it is already there. The copy is not recorded on a tape.
Tensor to(const Tensor& t, Device device);
inline Tensor to_host(const Tensor& t) { return to(t, Device::cpu); }
Batch to(const Batch& batch, Device device);

// dst = src, byte for byte, for tensors with the same number of bytes, on any two devices. The copy is a write to dst at the caller's line
// (Tensor::written), so a tape that kept dst detects the change. Errors: a tensor is empty, the lengths differ.
void copy(const Tensor& dst, const Tensor& src, const char* file = __builtin_FILE(), int line = __builtin_LINE());

Tensor zeros(const Shape& shape, Dtype dtype, Device device, CallSite caller = {});
inline Tensor zeros_like(const Tensor& t, CallSite caller = {}) { return zeros(t.shape(), t.dtype(), t.device(), caller); }

// Independent standard normal numbers. The numbers depend on `shape` and `seed`, not on the device. f32 and bf16 values are the f64 values,
// rounded. Errors: the dtype is not floating-point; the device is not available.
Tensor randn(const Shape& shape, uint64_t seed, Dtype dtype = Dtype::f32, Device device = Device::cpu);

template <class T>
concept Element = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, int64_t>;

// A copy of the values, row by row: tensor_of(std::vector<float>{1, 2, 3, 4}, {2, 2}).
// Errors: the number of values does not match the shape, the device is not available.
template <Element T> Tensor tensor_of(const std::vector<T>& values, const Shape& shape, Device device = Device::cpu);

// Element i of a tensor on any device, or its only element, as a double (even for i64). Used for logging and tests.
double item(const Tensor& t, std::optional<int64_t> i = {});

}  // namespace ricci
