// Where tensors come from: one allocator per device, and an account of the bytes held.
#pragma once
#include "core/tensor.h"

namespace ricci {

struct MemoryUse {
  int64_t current;      // bytes held by live tensors
  int64_t peak;         // the most there ever were, or since reset_peak
  int64_t allocations;  // requests that reached the system (not those answered from the cache)
};

MemoryUse memory_use(Device device);
void reset_peak(Device device);

class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual void* allocate(int64_t bytes) = 0;  // null when there is no memory left
  virtual void release(void* data, int64_t bytes) = 0;
  virtual int64_t system_allocations() const = 0;
};

// The toolbox gives core the allocators of devices that core knows nothing about; they live to the end of the program.
void set_allocator(Device device, Allocator* allocator);

Storage* allocate_storage(int64_t bytes, Device device);
void release_storage(Storage* storage);

}  // namespace ricci
