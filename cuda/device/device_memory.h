// The services that a device provides for its tensors: memory, copies and graphs. One class implements them for the emulator. Builds with
// the toolkit have a second class for cuda (cuda/toolkit/cuda_memory.cpp).
#pragma once
#include <string>

#include "core/memory/memory.h"
#include "core/tensor.h"

namespace ricci {

class DeviceMemory : public Allocator {
 public:
  virtual void copy_in(void* device, const void* host, int64_t bytes) = 0;   // on return, the host memory can be overwritten
  virtual void copy_out(void* host, const void* device, int64_t bytes) = 0;  // waits until the copy is done
  virtual void copy_within(void* target, const void* source, int64_t bytes) = 0;
  virtual void fill_zero(void* device, int64_t bytes) = 0;
  virtual void synchronize() = 0;              // waits for all launched work
  virtual void trim() = 0;                     // waits, then returns unused memory to the system
  virtual int64_t reserved_bytes() const = 0;  // obtained from the system, for tensors and for later requests
  virtual int64_t shared_bytes() const = 0;    // the most shared memory that one thread block can have
  virtual int64_t total_bytes() const = 0;     // total memory, used or not
  virtual bool has_wgmma() const = 0;          // kernels can use the functions wgmma_* of cuda/ptx.h

  // Graphs (cuda/device/graph.h). From begin to end (or drop), this OS thread's work is recorded and does not run.
  virtual void begin_recording() = 0;
  virtual void* end_recording() = 0;  // returns the graph
  virtual void drop_recording() = 0;
  virtual void launch_graph(void* graph) = 0;
  virtual void end_graph(void* graph) = 0;
};

DeviceMemory& device_memory(Device device);  // for cuda or cuda_emulated; error: the device is not available
DeviceMemory& emulated_memory();

// In builds with the toolkit: the GPU with this index, modulo the number of GPUs. Null if this GPU is not usable; `why` is then the reason,
// in one line.
DeviceMemory* find_cuda(int index, const char** why);
std::string cuda_gpu_in_use();

}  // namespace ricci
