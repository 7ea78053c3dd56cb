// The source of tensors: one allocator per device, and an account of the bytes held.
#pragma once
#include <array>
#include <functional>
#include <string>

#include "core/tensor.h"

namespace ricci {

struct MemoryUse {
  int64_t current;      // bytes held by live tensors
  int64_t peak;         // the most there ever were, or since reset_peak
  int64_t allocations;  // requests that reached the system (not those answered from the cache)
};

MemoryUse memory_use(Device device);
void reset_peak(Device device);
std::string room_on(Device device);  // Allocator::room

class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual void* allocate(int64_t bytes) = 0;  // null when there is no memory left
  virtual void release(void* data, int64_t bytes) = 0;
  virtual int64_t system_allocations() const = 0;
  // The room that the device has, for the message when there is none: "1.0 MiB of 80.0 GiB free". Empty if it is not known.
  virtual std::string room() const { return {}; }
};

// The purpose that memory is held for. Memory that several hold counts for the first of these.
enum class HeldFor : uint8_t { parameters, gradients, optimizer_state, activations, other };

// Something that holds tensors and knows for what: a model, an optimizer, a tape. When memory runs out on the thread that
// made it, it is asked.
class MemoryHolder {
 public:
  using Visit = std::function<void(const Tensor&, HeldFor)>;  // takes empty tensors too
  MemoryHolder();
  MemoryHolder(const MemoryHolder&);
  MemoryHolder& operator=(const MemoryHolder&) { return *this; }
  virtual ~MemoryHolder();
  virtual void each_held(const Visit& visit) const = 0;
  // Its present work: "in the backward of gelu (models/layers/block.h:31)". Empty without work.
  virtual std::string doing() const { return {}; }
};

// The toolbox gives core the allocators of devices that core knows nothing about; they live to the end of the program.
void set_allocator(Device device, Allocator* allocator);
Allocator& allocator_of(Device device);  // error: the device is not available

// Error: no memory left. The line names the caller, the bytes that it asked for, the work in progress, and the holders of the memory in
// use:
//   out of memory on cuda: gelu: forward (ops/elements/gelu.cu:49), after linear (models/layers/block.h:31), asked for 768.0 MiB (805306368
//   bytes); 1.5 MiB of 79.1 GiB free on the GPU; held: activations 50.2 GiB, optimizer state 12.0 GiB, parameters 6.0 GiB, other 1.1 GiB,
//   together 69.3 GiB
Storage* allocate_storage(int64_t bytes, Device device, CallSite asker = {});
void release_storage(Storage* storage);
std::string out_of_memory(int64_t bytes, Device device, const CallSite& asker);  // that line

// The bytes on the device by what they are held for; `other` is what no holder on this thread knows of.
using HeldBytes = std::array<int64_t, static_cast<size_t>(HeldFor::other) + 1>;
HeldBytes held_on(Device device);
// The memory held for the batch and not for the model: activations and `other`.
inline int64_t working_bytes(const HeldBytes& held) {
  return held[static_cast<size_t>(HeldFor::activations)] + held[static_cast<size_t>(HeldFor::other)];
}
const char* name_of(HeldFor use);

// 512 bytes, 1.5 KiB, 768.0 MiB
std::string show_bytes(int64_t bytes);

// While alive, `on_request` is called with the bytes of each tensor that this thread asks for on the device, before they are counted, and
// `on_block` with the memory that it got, or with -1 bytes when a tensor has released it. One at a time on a thread. (A dry run has its
// own: core/memory/dry_run.h.)
class RequestWatch {
 public:
  using OnRequest = std::function<void(int64_t bytes)>;
  using OnBlock = std::function<void(const void* block, int64_t bytes)>;
  RequestWatch(Device device, OnRequest on_request, OnBlock on_block = {});
  ~RequestWatch();
  RequestWatch(const RequestWatch&) = delete;
};

}  // namespace ricci
