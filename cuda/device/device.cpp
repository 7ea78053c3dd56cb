// Devices, and the few functions that need no kernel. The program looks for a GPU on first use, so a CPU program does not wait for a
// driver.
#include "cuda/device/device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/choice.h"
#include "core/cpu/parallel.h"
#include "core/dims.h"
#include "core/error.h"
#include "core/memory/dry_run.h"
#include "core/random.h"
#include "cuda/device/device_memory.h"
#include "cuda/device/graph.h"
#include "cuda/launch.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {
namespace {

int gpu_index = 0;

struct Cuda {
  DeviceMemory* memory = nullptr;
  const char* why = "";
  Cuda() {
#ifdef RICCI_HAS_CUDA
    memory = find_cuda(gpu_index, &why);
    if (memory) set_allocator(Device::cuda, memory);
#else
    why = "this binary was built without the CUDA toolkit";
#endif
  }
};

const Cuda& cuda() {
  static const Cuda c;
  return c;
}

// Registers the emulator before main(): a program's first tensor can be on the emulated device.
[[maybe_unused]] const bool emulator_registered = (set_allocator(Device::cuda_emulated, &emulated_memory()), true);

void not_recorded(const char* what) {
  if (recording_graph()) fail("graph: {} cannot be recorded", {what});
}

}  // namespace

DeviceMemory& device_memory(Device device) {
  require(device);
  return device == Device::cuda ? *cuda().memory : emulated_memory();
}

bool is_switched_on(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value && std::string_view(value) != "0";
}

bool available(Device device) { return device != Device::cuda || cuda().memory; }

const char* why_not(Device device) { return available(device) ? "" : cuda().why; }

void require(Device device) {
  if (!available(device)) fail("device {}: {}", {name_of(device), why_not(device)});
}

void launch_without_device(const char* name, Device device) {
  if (device == Device::cpu) fail("{}: kernels do not run on the cpu", {name});
  fail("{}: device {}: {}", {name, name_of(device), why_not(device)});
}

void refuse_threads(const char* name, int threads, int most) {
  fail("{}: {} threads per block, expected at most {} (kThreads of the kernel)", {name, threads, most});
}

Dtype parse_dtype(const char* name) {
  for (Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16})
    if (std::string_view(name) == name_of(dtype)) return dtype;
  fail("dtype: expected {}, got '{}'", {kFloatingDtypes, name});
}

Device parse_device(const char* name) {
  const Device device = choice_of<Device>("device", name);
  require(device);
  return device;
}

void use_gpu(int index) { gpu_index = index; }

std::string gpu_in_use() {
#ifdef RICCI_HAS_CUDA
  if (cuda().memory) return cuda_gpu_in_use();
#endif
  return "";
}

void synchronize(Device device) {
  if (device == Device::cpu) return;
  not_recorded("waiting for the device");
  device_memory(device).synchronize();
}

// Copies within the CPU's memory, on all threads. One thread cannot use the full memory bandwidth.
static void copy_here(char* target, const char* source, int64_t bytes) {
  constexpr int64_t grain = int64_t{1} << 20;
  parallel_for(
      bytes, grain, [&](int64_t begin, int64_t end) { std::memcpy(target + begin, source + begin, static_cast<size_t>(end - begin)); });
}

void copy(const Tensor& dst, const Tensor& src, const char* file, int line) {
  if (!dst || !src) fail("copy: {} is empty", {dst ? "src" : "dst"});
  if (dst.bytes() != src.bytes())
    fail("copy: {} {} and {} {} differ in size", {name_of(src.dtype()), show(src.shape()), name_of(dst.dtype()), show(dst.shape())});
  const Device target = dst.device(), source = src.device();
  const int64_t bytes = src.bytes();
  if (bytes == 0) return;
  dst.written(file, line);
  if (is_dry_run()) {
    if (target == Device::cpu && source != Device::cpu) std::memset(dst.raw(), 0, static_cast<size_t>(bytes));
    return;
  }
  if (target == Device::cpu && source == Device::cpu) {
    copy_here(static_cast<char*>(dst.raw()), static_cast<const char*>(src.raw()), bytes);
  } else if (target == source) {
    device_memory(target).copy_within(dst.raw(), src.raw(), bytes);
  } else if (source == Device::cpu) {
    not_recorded("a copy from the CPU");
    device_memory(target).copy_in(dst.raw(), src.raw(), bytes);
  } else if (target == Device::cpu) {
    not_recorded("a copy to the CPU");
    device_memory(source).copy_out(dst.raw(), src.raw(), bytes);
  } else {
    copy(dst, ricci::to(src, Device::cpu), file, line);
  }
}

Tensor to(const Tensor& t, Device device) {
  if (t.device() == device) return t;
  require(device);
  Tensor moved(t.shape(), t.dtype(), device);
  copy(moved, t);
  return moved;
}

Batch to(const Batch& batch, Device device) {
  const auto moved = [&](const Tensor& t) { return t ? to(t, device) : t; };
  return {moved(batch.ids_bc), moved(batch.targets), moved(batch.lengths_b), batch.scored};
}

Tensor zeros(const Shape& shape, Dtype dtype, Device device, CallSite caller) {
  require(device);
  Tensor t(shape, dtype, device, caller);
  if (t.bytes() == 0 || is_dry_run()) return t;
  if (device == Device::cpu) std::memset(t.raw(), 0, static_cast<size_t>(t.bytes()));
  else device_memory(device).fill_zero(t.raw(), t.bytes());
  return t;
}

Tensor randn(const Shape& shape, uint64_t seed, Dtype dtype, Device device) {
  if (dtype == Dtype::i64) fail("randn: dtype is {}, expected {}", {name_of(dtype), kFloatingDtypes});
  const Tensor values(shape, Dtype::f64);
  fill_normal(values.data<double>(), values.size(), 0.0, 1.0, Philox{seed, 0});
  return to(convert(values, dtype), device);
}

template <Element T> Tensor tensor_of(const std::vector<T>& values, const Shape& shape, Device device) {
  if (static_cast<int64_t>(values.size()) != shape.size()) fail("tensor_of: {} values do not match shape {}", {values.size(), show(shape)});
  const Tensor t(shape, dtype_of<T>);
  std::copy(values.begin(), values.end(), t.data<T>());
  return to(t, device);
}

template Tensor tensor_of(const std::vector<float>&, const Shape&, Device);
template Tensor tensor_of(const std::vector<double>&, const Shape&, Device);
template Tensor tensor_of(const std::vector<int64_t>&, const Shape&, Device);

double item(const Tensor& t, std::optional<int64_t> asked) {
  if (!t) fail("item: the tensor is empty");
  if (!asked && t.size() != 1) fail("item: {} has {} elements, expected 1; item(t, i) reads element i", {show(t.shape()), t.size()});
  const int64_t i = asked.value_or(0);
  if (i < 0 || i >= t.size()) fail("item: index {} is out of range for shape {}", {i, show(t.shape())});
  const Tensor one = to(t.detached().reshaped({t.size()}).rows(i, 1), Device::cpu);
  switch (t.dtype()) {
    case Dtype::f32: return static_cast<double>(*one.data<float>());
    case Dtype::f64: return *one.data<double>();
    case Dtype::bf16: return static_cast<double>(static_cast<float>(*one.data<bf16>()));
    case Dtype::i64: return static_cast<double>(*one.data<int64_t>());
  }
  return 0;
}

}  // namespace ricci
