// What a device offers to the tensors on it. One implementation each for cuda (built where the toolkit is) and the emulator.
#pragma once
#include "core/memory.h"

namespace ricci {

class DeviceMemory : public Allocator {
 public:
  virtual void copy_in(void* device, const void* host, int64_t bytes) = 0;
  virtual void copy_out(void* host, const void* device, int64_t bytes) = 0;  // waits until it is there
  virtual void copy_within(void* to, const void* from, int64_t bytes) = 0;
  virtual void fill_zero(void* device, int64_t bytes) = 0;
  virtual void synchronize() = 0;
};

DeviceMemory& emulated_memory();

// Built by nvcc. Null when there is no usable GPU; then `why` says so in one line.
DeviceMemory* find_cuda(const char** why);

}  // namespace ricci
