// The GPU behind Device::cuda: memory from the driver's stream-ordered pool, copies, the stream, and the checks around
// every launch. One GPU, a main stream and those of cuda/stream.h.
#include <cuda_runtime_api.h>

#include <string>
#include <utility>

#include "core/error.h"
#include "cuda/device_memory.h"
#include "cuda/grid.h"

namespace ricci {
namespace {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) fail("{}: {}", {what, cudaGetErrorString(status)});
}

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  return stream;
}

cudaStream_t main_stream() {
  static const cudaStream_t stream = new_stream();
  return stream;
}

thread_local cudaStream_t used = nullptr;  // null: the main stream

cudaStream_t the_stream() { return used ? used : main_stream(); }
cudaStream_t stream_of(void* handle) { return handle ? static_cast<cudaStream_t>(handle) : main_stream(); }

class CudaMemory final : public DeviceMemory {
 public:
  CudaMemory() {
    cudaMemPool_t pool = nullptr;
    check(cudaDeviceGetDefaultMemPool(&pool, 0), "cudaDeviceGetDefaultMemPool");
    uint64_t keep_everything = UINT64_MAX;  // freed blocks stay in the pool from one step to the next
    check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep_everything), "cudaMemPoolSetAttribute");
  }
  void* allocate(int64_t bytes) override {
    void* data = nullptr;
    ++allocations_;
    const cudaError_t status = cudaMallocAsync(&data, static_cast<size_t>(bytes ? bytes : 1), the_stream());
    if (status == cudaErrorMemoryAllocation) return static_cast<void>(cudaGetLastError()), nullptr;
    check(status, "cudaMallocAsync");
    return data;
  }
  void release(void* data, int64_t) override { cudaFreeAsync(data, the_stream()); }
  int64_t system_allocations() const override { return allocations_; }
  void copy_in(void* device, const void* host, int64_t bytes) override {
    check(cudaMemcpyAsync(device, host, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, the_stream()), "copy to the GPU");
    synchronize(used);  // the caller may free the host memory at once
  }
  void copy_out(void* host, const void* device, int64_t bytes) override {
    check(cudaMemcpyAsync(host, device, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, the_stream()), "copy from the GPU");
    synchronize(used);
  }
  void copy_within(void* to, const void* from, int64_t bytes) override {
    check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, the_stream()), "copy on the GPU");
  }
  void fill_zero(void* device, int64_t bytes) override {
    check(cudaMemsetAsync(device, 0, static_cast<size_t>(bytes), the_stream()), "zeros on the GPU");
  }
  void synchronize() override { check(cudaDeviceSynchronize(), "wait for the GPU"); }

  void* make_stream() override { return new_stream(); }
  void end_stream(void* stream) override { cudaStreamDestroy(stream_of(stream)); }
  void* use_stream(void* stream) override { return std::exchange(used, static_cast<cudaStream_t>(stream)); }
  void wait_for(void* stream, void* other) override {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    check(cudaEventRecord(event, stream_of(other)), "cudaEventRecord");
    check(cudaStreamWaitEvent(stream_of(stream), event), "cudaStreamWaitEvent");
    cudaEventDestroy(event);  // once it has happened
  }
  void synchronize(void* stream) override { check(cudaStreamSynchronize(stream_of(stream)), "wait for the GPU"); }

 private:
  int64_t allocations_ = 0;
};

}  // namespace

DeviceMemory* find_cuda(const char** why) {
  static std::string reason;
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaSuccess && devices > 0) {
    static CudaMemory& memory = *new CudaMemory;
    return &memory;
  }
  const bool no_driver = status == cudaErrorInsufficientDriver || status == cudaErrorNoDevice;
  reason = status == cudaSuccess ? "no GPU found" : no_driver ? "no GPU found, or its driver is missing or too old" : cudaGetErrorString(status);
  *why = reason.c_str();
  cudaGetLastError();
  return nullptr;
}

}  // namespace ricci

// What cuda/launch.h declares for the nvcc build.
namespace ricci::cuda_build {

cudaStream_t stream() { return the_stream(); }

void prepare_launch(const char* name, const void* function, Grid grid) {
  if (grid.blocks < 1 || grid.blocks > 0x7fffffff || grid.threads < 1 || grid.threads > 1024)
    fail("{}: a grid of {} blocks of {} threads cannot be launched", {name, grid.blocks, grid.threads});
  if (grid.dynamic_shared_bytes > 48 * 1024)
    check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, grid.dynamic_shared_bytes), name);
}

void check_launch(const char* name) { check(cudaGetLastError(), name); }

}  // namespace ricci::cuda_build
