// The stub of the runtime: devices, errors, streams and events, launches. Memory and graphs are in cudart_memory.cpp.
#include <cstdlib>
#include <cstring>

#include "tests/cuda/stub/state.h"
// after it
#include "cuda/device/device.h"
#include "cuda/launch.h"

namespace ricci::cuda_build {
cudaStream_t stream();
void check(cudaError_t status, const char* what);
void check_grid(const char* name, int64_t blocks, int threads);
void begin_launch(const char* name);
void check_launch(const char* name, cudaError_t status);
}  // namespace ricci::cuda_build

namespace stub {

State& state() {
  static State& one = *new State;  // outlives every tensor
  return one;
}

std::string& complaint() { return state().complaint; }

void fail_call(const std::string& name, int nth, int status) { state().failures[name] = {nth, status}; }

void forgive() {
  state().failures.clear();
  state().sticky = last_error = cudaSuccess;
  state().complaint.clear();
}

int products_run() { return state().products_run; }

void limit_pool(size_t bytes) { state().limit = bytes; }

cudaError_t wrong(cudaError_t error, const std::string& what) {
  state().complaint = what;
  return error;
}

cudaError_t not_while_capturing(const char* name) {
  if (!captured) return cudaSuccess;
  capture_spoilt = true;
  return wrong(cudaErrorStreamCaptureUnsupported, std::string(name) + " while a stream is captured");
}

bool may_be_used(cudaStream_t stream) {
  if (!state().streams.contains(stream)) return wrong(cudaErrorInvalidValue, "the legacy stream, or one that was destroyed"), false;
  if (captured && captured != stream) return wrong(cudaErrorStreamCaptureIsolation, "another stream than the captured one"), false;
  return true;
}

void queue(std::function<void()> work) {
  const Lazily lazily;
  emu::queue_or_run(std::move(work));
}

void launch(const emu::Launch& launch, void (*body)(const void*), const void* kernel, size_t bytes, void* handle) {
  const auto stream = static_cast<cudaStream_t>(handle);
  call("cudaLaunchKernel", [&] {
    if (!may_be_used(stream)) return cudaErrorInvalidResourceHandle;
    if (stream->gpu != gpu) return wrong(cudaErrorInvalidResourceHandle, "a stream of another GPU");
    const Lazily lazily;
    return emu::launch(launch, body, kernel, bytes), cudaSuccess;
  });
}

namespace {

void launch_for_ricci(const emu::Launch& l, void (*body)(const void*), const void* kernel, size_t bytes) {
  using namespace ricci::cuda_build;
  const auto function = reinterpret_cast<const void*>(body);
  const int shared_bytes = static_cast<int>(l.dynamic_shared_bytes);
  check_grid(l.name, l.grid.x, static_cast<int>(l.block.x));
  if (shared_bytes) check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes), l.name);
  begin_launch(l.name);
  launch(l, body, kernel, bytes, stream());
  check_launch(l.name, cudaGetLastError());
}

[[maybe_unused]] const bool registered = (ricci::use_gpu(1), emu::cuda_stub = launch_for_ricci, true);

}  // namespace
}  // namespace stub

using namespace stub;

int ricci_stub_status(const char* name) {
  const std::lock_guard lock(state().mutex);
  const auto asked = state().failures.find(name);
  if (asked == state().failures.end() || --asked->second.first > 0) return 0;
  const int status = asked->second.second;
  state().failures.erase(asked);
  return status;
}

int ricci_stub_wrong(int status, const char* what) {
  const std::lock_guard lock(state().mutex);
  state().complaint = what;
  return status;
}

void ricci_stub_ran() {
  const std::lock_guard lock(state().mutex);
  ++state().products_run;
}

bool ricci_stub_queue(void* stream, std::function<void()> work) {
  const std::lock_guard lock(state().mutex);
  if (!may_be_used(static_cast<cudaStream_t>(stream))) return false;
  queue(std::move(work));
  return true;
}

extern "C" {

cudaError_t cudaGetLastError() {
  const cudaError_t error = state().sticky ? state().sticky : last_error;
  last_error = cudaSuccess;
  return error;
}
const char* cudaGetErrorString(cudaError_t error) {
  static thread_local std::string text;
  text = "stub error " + std::to_string(error) + (complaint().empty() ? "" : " (" + complaint() + ")");
  return text.c_str();
}
cudaError_t cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", [&] {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    return visible && !*visible ? cudaErrorNoDevice : (*count = 2, cudaSuccess);
  });
}
cudaError_t cudaGetDevice(int* device) {
  return call("cudaGetDevice", [&] { return *device = gpu, cudaSuccess; });
}
cudaError_t cudaSetDevice(int device) {
  return call("cudaSetDevice", [&] { return device < 2 ? (gpu = device, cudaSuccess) : cudaErrorInvalidDevice; });
}
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  return call("cudaGetDeviceProperties", [&] {
    std::strcpy(properties->name, "stub of an H200");
    properties->major = 9, properties->minor = 0;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  return call("cudaDeviceGetAttribute", [&] {
    if (attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin) return *value = 227 << 10, cudaSuccess;
    if (attribute == cudaDevAttrMemoryPoolsSupported) return *value = 1, cudaSuccess;
    return wrong(cudaErrorInvalidValue, "an attribute that the stub does not know");
  });
}
cudaError_t cudaDeviceGetPCIBusId(char* place, int length, int device) {
  return call(
      "cudaDeviceGetPCIBusId", [&] { return std::snprintf(place, static_cast<size_t>(length), "0000:0%d:00.0", device), cudaSuccess; });
}
// Waits only for streams of this GPU.
cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", [] {
    if (const cudaError_t error = not_while_capturing("cudaDeviceSynchronize")) return error;
    for (const cudaStream_t stream : state().streams)
      if (stream->gpu == gpu) emu::synchronize();
    return cudaSuccess;
  });
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute attribute, int value) {
  const bool possible = attribute == cudaFuncAttributeMaxDynamicSharedMemorySize && value <= 227 << 10;
  return call("cudaFuncSetAttribute", [&] { return possible ? cudaSuccess : cudaErrorInvalidValue; });
}

// ---- Streams and events

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return call("cudaStreamCreateWithFlags", [&] {
    if (flags != cudaStreamNonBlocking) return wrong(cudaErrorInvalidValue, "a stream that waits for the legacy stream");
    state().streams.insert(*stream = new CUstream_st{gpu});
    return cudaSuccess;
  });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call("cudaStreamSynchronize", [&] {
    if (const cudaError_t error = not_while_capturing("cudaStreamSynchronize")) return error;
    if (!may_be_used(stream)) return cudaErrorInvalidResourceHandle;
    return emu::synchronize(), cudaSuccess;
  });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return call("cudaEventCreateWithFlags", [&] { return *event = new CUevent_st{.gpu = gpu}, cudaSuccess; });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaEventRecord", [&] {
    if (!may_be_used(stream)) return cudaErrorInvalidResourceHandle;
    if (event->gpu != stream->gpu) return wrong(cudaErrorInvalidResourceHandle, "an event of another GPU than its stream");
    event->has_happened = std::make_shared<bool>(false);
    return queue([happens = event->has_happened] { *happens = true; }), cudaSuccess;
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call("cudaEventSynchronize", [&] {
    if (const cudaError_t error = not_while_capturing("cudaEventSynchronize")) return error;
    if (!*event->has_happened) emu::synchronize();
    return cudaSuccess;
  });
}

// ---- Objects of nvcc, if any, register kernels that never run here

void** __cudaRegisterFatBinary(void*) {
  static void* none = nullptr;
  return &none;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
unsigned __cudaPushCallConfiguration(cuda_dim3, cuda_dim3, size_t, void*) { return 1; }
cudaError_t __cudaPopCallConfiguration(cuda_dim3*, cuda_dim3*, size_t*, void*) { return cudaErrorLaunchFailure; }
cudaError_t cudaLaunchKernel(const void*, cuda_dim3, cuda_dim3, void**, size_t, cudaStream_t) {
  return call("cudaLaunchKernel", [] { return wrong(cudaErrorLaunchFailure, "a kernel of nvcc was launched on the stub"); });
}
// From CUDA 13 on.
cudaError_t __cudaGetKernel(void**, const void*) { return cudaErrorLaunchFailure; }
cudaError_t __cudaLaunchKernel(void*, cuda_dim3 grid, cuda_dim3 block, void** arguments, size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(nullptr, grid, block, arguments, shared, stream);
}

}  // extern "C"
