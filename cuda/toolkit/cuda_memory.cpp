// Implements Device::cuda: memory from the driver's stream-ordered pool, and copies. It uses one GPU of the machine and one stream.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "core/error.h"
#include "core/memory/memory.h"
#include "cuda/device/device.h"
#include "cuda/device/device_memory.h"
#include "cuda/device/gpu_errors.h"
#include "cuda/toolkit/runtime.h"

namespace ricci {

using cuda_build::check, cuda_build::report;

namespace {

int gpu = 0;  // index of the GPU in use
bool gpu_has_wgmma = false;

// Selects the GPU for a thread. The runtime starts each new thread with GPU 0.
void choose_gpu() {
  thread_local int chosen = 0;
  if (chosen == gpu) return;
  check(cudaSetDevice(gpu), "cudaSetDevice");
  chosen = gpu;
}

cudaStream_t the_stream() {
  choose_gpu();
  static const cudaStream_t stream = [] {
    cudaStream_t made = nullptr;
    check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreate");
    return made;
  }();
  return stream;
}

// Copies to the GPU go through pinned memory. The GPU reads this memory later. A copy from ordinary memory would wait for all earlier
// launches, so the next batch could not be copied during a step.
class PinnedRing {
 public:
  PinnedRing() {
    check(cudaHostAlloc(reinterpret_cast<void**>(&memory_), kParts * kPart, cudaHostAllocDefault), "cudaHostAlloc");
    for (cudaEvent_t& copied : copied_) check(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming), "cudaEventCreate");
  }
  void copy(char* device, const char* host, size_t bytes, cudaStream_t stream) {
    const std::lock_guard locked(lock_);
    for (size_t done = 0; done < bytes; done += kPart) {
      const size_t part = next_++ % kParts, length = std::min(kPart, bytes - done);
      char* const pinned = memory_ + part * kPart;
      check(cudaEventSynchronize(copied_[part]), "wait for the GPU");  // the GPU may still be reading the part
      std::memcpy(pinned, host + done, length);
      check(cudaMemcpyAsync(device + done, pinned, length, cudaMemcpyHostToDevice, stream), "copy to the GPU");
      check(cudaEventRecord(copied_[part], stream), "cudaEventRecord");
    }
  }

 private:
  static constexpr size_t kParts = 8, kPart = size_t{1} << 20;  // bytes; a batch of 64 x 1,024 ids takes half a part
  char* memory_ = nullptr;
  cudaEvent_t copied_[kParts] = {};
  size_t next_ = 0;
  std::mutex lock_;  // two threads can copy at the same time
};

class CudaMemory final : public DeviceMemory {
 public:
  CudaMemory() {
    check(cudaDeviceGetDefaultMemPool(&pool_, gpu), "cudaDeviceGetDefaultMemPool");
    uint64_t keep_everything = UINT64_MAX;  // freed blocks stay in the pool from one step to the next
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep_everything), "cudaMemPoolSetAttribute");
    check(cudaDeviceGetAttribute(&shared_bytes_, cudaDevAttrMaxSharedMemoryPerBlockOptin, gpu), "cudaDeviceGetAttribute");
    size_t free = 0;
    check(cudaMemGetInfo(&free, &total_bytes_), "cudaMemGetInfo");
  }
  void* allocate(int64_t bytes) override {
    void* data = nullptr;
    if (!from_pool(&data, bytes)) {
      // Freed memory may wait for its stream, or be in parts that are too small, so it is returned and requested again.
      trim();
      if (!from_pool(&data, bytes)) return nullptr;
    }
    uint64_t reserved = 0;
    check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved), "cudaMemPoolGetAttribute");
    reserved_ = reserved;
    return data;
  }
  void release(void* data, int64_t) override { report(cudaFreeAsync(data, the_stream()), "release of GPU memory"); }
  void trim() override {
    synchronize();
    check(cudaMemPoolTrimTo(pool_, 0), "cudaMemPoolTrimTo");
  }
  int64_t reserved_bytes() const override { return static_cast<int64_t>(reserved_); }
  std::string room() const override {
    choose_gpu();
    size_t free = 0, all = 0;
    if (cudaMemGetInfo(&free, &all) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      return {};
    }
    return format_message("{} of {} free on the GPU", {show_bytes(static_cast<int64_t>(free)), show_bytes(static_cast<int64_t>(all))});
  }
  void copy_in(void* device, const void* host, int64_t bytes) override {
    pinned_.copy(static_cast<char*>(device), static_cast<const char*>(host), static_cast<size_t>(bytes), the_stream());
  }
  void copy_out(void* host, const void* device, int64_t bytes) override {
    check(cudaMemcpyAsync(host, device, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, the_stream()), "copy from the GPU");
    check(cudaStreamSynchronize(the_stream()), "wait for the GPU");
  }
  void copy_within(void* target, const void* source, int64_t bytes) override {
    check(cudaMemcpyAsync(target, source, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, the_stream()), "copy on the GPU");
  }
  void fill_zero(void* device, int64_t bytes) override {
    check(cudaMemsetAsync(device, 0, static_cast<size_t>(bytes), the_stream()), "zeros on the GPU");
  }
  void synchronize() override {
    choose_gpu();
    check(cudaDeviceSynchronize(), "wait for the GPU");
  }
  int64_t shared_bytes() const override { return shared_bytes_; }
  int64_t total_bytes() const override { return static_cast<int64_t>(total_bytes_); }
  bool has_wgmma() const override { return gpu_has_wgmma; }

  // Records only the work of this OS thread; work of other threads runs as usual.
  void begin_recording() override {
    check(cudaStreamBeginCapture(the_stream(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  }
  void* end_recording() override {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    check(cudaStreamEndCapture(the_stream(), &graph), "cudaStreamEndCapture");
    const cudaError_t status = cudaGraphInstantiateWithFlags(&ready, graph, 0);
    report(cudaGraphDestroy(graph), "end of a recording");
    check(status, "cudaGraphInstantiate");
    return ready;
  }
  void drop_recording() override {
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(the_stream(), &graph) == cudaSuccess && graph) report(cudaGraphDestroy(graph), "end of a recording");
    cudaGetLastError();
  }
  void launch_graph(void* graph) override {
    cuda_build::begin_launch("graph");
    cuda_build::check_launch("graph", cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), the_stream()));
  }
  void end_graph(void* graph) override {
    report(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)), "end of a graph");  // launched work still runs
  }

 private:
  // Returns false if the GPU has no more memory.
  bool from_pool(void** data, int64_t bytes) {
    const cudaError_t status = cudaMallocFromPoolAsync(data, static_cast<size_t>(bytes ? bytes : 1), pool_, the_stream());
    if (status == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());
      return false;
    }
    check(status, "cudaMallocFromPoolAsync");
    return true;
  }

  PinnedRing pinned_;
  cudaMemPool_t pool_ = nullptr;
  int shared_bytes_ = 0;
  size_t total_bytes_ = 0;
  std::atomic<uint64_t> reserved_{0};
};

// Returns the reason why the GPU cannot be used, or an empty text.
std::string look_at_gpu(int index) {
  GpuFound found{.architectures = RICCI_CUDA_ARCHITECTURES};
  const cudaError_t status = cudaGetDeviceCount(&found.devices);
  cudaGetLastError();
  found.error = status;
  found.error_text = cudaGetErrorString(status);
  cudaDriverGetVersion(&found.driver);
  cudaRuntimeGetVersion(&found.runtime);
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) found.visible = visible;
  cudaDeviceProp properties{};
  if (status == cudaSuccess && found.devices > 0) {
    int pools = 0;
    gpu = index % found.devices;
    choose_gpu();
    check(cudaGetDeviceProperties(&properties, gpu), "cudaGetDeviceProperties");
    check(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, gpu), "cudaDeviceGetAttribute");
    found.name = properties.name;
    found.major = properties.major;
    found.minor = properties.minor;
    found.memory_pools = pools != 0;
    gpu_has_wgmma = can_use_wgmma(found.architectures, found.major, found.minor) && !is_switched_on("RICCI_WITHOUT_WGMMA");
  }
  return why_no_gpu(found);
}

}  // namespace

DeviceMemory* find_cuda(int index, const char** why) {
  static std::string reason;
  try {
    reason = look_at_gpu(index);
    if (reason.empty()) {
      static CudaMemory& memory = *new CudaMemory;
      return &memory;
    }
  } catch (const Error& error) {  // found but not usable, for example in use by another process
    reason = error.what();
  }
  *why = reason.c_str();
  return nullptr;
}

std::string cuda_gpu_in_use() {
  char place[32] = "";
  check(cudaDeviceGetPCIBusId(place, sizeof place, gpu), "cudaDeviceGetPCIBusId");
  return place;
}

cudaStream_t cuda_build::stream() { return the_stream(); }

}  // namespace ricci
