// The source of tensors: one allocator per device, and an account of the bytes held.
#pragma once
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "core/choice.h"
#include "core/tensor.h"

namespace ricci {

struct MemoryUse {
  int64_t current;  // bytes held by live tensors
  int64_t peak;     // the most there ever were, or since reset_peak
};

MemoryUse memory_use(Device device);
void reset_peak(Device device);

class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual void* allocate(int64_t bytes) = 0;  // null when there is no memory left
  virtual void release(void* data, int64_t bytes) = 0;
  // The room that the device has, for the message when there is none: "1.0 MiB of 80.0 GiB free". Empty if it is not known.
  virtual std::string room() const { return {}; }
};

// The purpose that memory is held for. Memory that several hold counts for the first of these.
enum class HeldFor : uint8_t { parameters, gradients, optimizer_state, activations, other };
constexpr auto choices(HeldFor) { return std::array{"parameters", "gradients", "optimizer state", "activations", "other"}; }

// Something that holds tensors and knows for what: a model, an optimizer, a tape. When memory runs out on the thread that
// made it, it is asked.
class MemoryHolder {
 public:
  using Visit = std::function<void(const Tensor&, HeldFor)>;  // takes empty tensors too
  MemoryHolder();
  MemoryHolder(const MemoryHolder&) : MemoryHolder() {}
  MemoryHolder& operator=(const MemoryHolder&) { return *this; }
  virtual ~MemoryHolder();
  virtual void each_held(const Visit& visit) const = 0;
  // Its present work: "in the backward of gelu (models/layers/block.h:31)". Empty without work.
  virtual std::string doing() const { return {}; }
};

// The toolbox gives core the allocators of devices that core knows nothing about; they live to the end of the program.
void set_allocator(Device device, Allocator* allocator);
Allocator& allocator_of(Device device);  // error: the device is not available

// CPU memory for tensors: blocks are cut from huge-page slabs and kept for reuse, so that a training step after the first touches no fresh
// page. (A fresh GiB costs seven times more in page faults on small pages than on huge ones.)
Allocator& cpu_arena();

// Counts the memory that the arena would touch for the same requests: freed blocks wait for a request of their size, and small ones are
// cut from slabs, which are touched in whole huge pages.
class ArenaCounter {
 public:
  int64_t allocate(int64_t bytes);                 // returns the number that release() takes as `allocated`
  void release(int64_t bytes, int64_t allocated);  // both as at the request
  int64_t touched() const { return touched_; }

 private:
  std::vector<int64_t> free_[256];  // by size class: of each block the bytes that were touched
  int64_t touched_ = 0;
  int64_t left_ = 0;  // bytes of the newest slab that no block has
};

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

// 512 bytes, 1.5 KiB, 768.0 MiB
std::string show_bytes(int64_t bytes);

// While alive, `on_block` is called with the memory of each tensor that this thread makes on the device, before it is counted, and with -1
// bytes when a tensor releases its memory. One at a time on a thread.
class RequestWatch {
 public:
  using OnBlock = std::function<void(const void* block, int64_t bytes)>;
  RequestWatch(Device device, OnBlock on_block);
  ~RequestWatch();
  RequestWatch(const RequestWatch&) = delete;

  const Device device;
  const OnBlock on_block;
};

}  // namespace ricci
