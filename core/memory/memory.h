// The memory of tensors: an allocator per device, and a count of the bytes in use. Owners of tensors are registered, so an out-of-memory
// error can list the bytes of parameters, gradients and activations.
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
  int64_t peak;     // maximum since the start or the last reset_peak
};

MemoryUse memory_use(Device device);
void reset_peak(Device device);

class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual void* allocate(int64_t bytes) = 0;  // null if no memory is left
  virtual void release(void* data, int64_t bytes) = 0;
  // The device's memory, for the out-of-memory message: "1.0 MiB of 80.0 GiB free". Empty if unknown.
  virtual std::string room() const { return {}; }
};

// The purpose of memory. If memory has two purposes, the first one listed here is used.
enum class HeldFor : uint8_t { parameters, gradients, optimizer_state, activations, other };
constexpr auto choices(HeldFor) { return std::array{"parameters", "gradients", "optimizer state", "activations", "other"}; }

// An owner of tensors: a model, an optimizer, a tape. If memory runs out on its thread, the error lists its tensors.
class MemoryHolder {
 public:
  using Visit = std::function<void(const Tensor&, HeldFor)>;  // also called with empty tensors
  MemoryHolder();
  MemoryHolder(const MemoryHolder&) : MemoryHolder() {}
  MemoryHolder& operator=(const MemoryHolder&) { return *this; }
  virtual ~MemoryHolder();
  virtual void each_tensor(const Visit& visit) const = 0;
  // For the error: "in the backward of gelu (models/layers/block.h:31)". Empty if no op is running.
  virtual std::string current_work() const { return {}; }
};

// The layer cuda/ sets the allocators of its devices; core/ does not know these devices. Allocators must live until the end of the program.
void set_allocator(Device device, Allocator* allocator);
Allocator& allocator_of(Device device);  // error: the device is not available

// CPU memory for tensors. Blocks are cut from slabs of huge pages and kept for reuse: after its first step, training touches no fresh page.
// (Page faults cost seven times more on small pages than on huge ones.)
Allocator& cpu_arena();

// Counts the memory that the arena would touch for the same requests. Freed blocks wait for a request of their size class. Small blocks are
// cut from slabs, and a slab is touched in full huge pages.
class ArenaCounter {
 public:
  int64_t allocate(int64_t bytes);                 // returns the number to pass to release() as `allocated`
  void release(int64_t bytes, int64_t allocated);  // `bytes` as requested, `allocated` as returned by allocate()
  int64_t touched() const { return touched_; }

 private:
  std::vector<int64_t> free_[256];  // by size class: the touched bytes of each block
  int64_t touched_ = 0;
  int64_t left_ = 0;  // bytes of the newest slab that belong to no block
};

// Error: no memory is left. The message contains the caller, the bytes requested, the running op, and the memory in use:
//   out of memory on cuda: softmax: forward (ops/rows/softmax.cu:30), after linear (models/layers/block.h:31), asked for 768.0 MiB
//   (805306368 bytes); 1.5 MiB of 79.1 GiB free on the GPU; held: activations 50.2 GiB, optimizer state 12.0 GiB, parameters 6.0 GiB,
//   other 1.1 GiB, together 69.3 GiB
Storage* allocate_storage(int64_t bytes, Device device, CallSite caller = {});
void release_storage(Storage* storage);
std::string out_of_memory(int64_t bytes, Device device, const CallSite& caller);  // the message above

// The bytes on the device by purpose; `other` is memory that no holder of this thread lists.
using HeldBytes = std::array<int64_t, static_cast<size_t>(HeldFor::other) + 1>;
HeldBytes held_on(Device device);
// The bytes of memory that depend on the batch.
inline int64_t working_bytes(const HeldBytes& held) {
  return held[static_cast<size_t>(HeldFor::activations)] + held[static_cast<size_t>(HeldFor::other)];
}

// Formats bytes: 512 bytes, 1.5 KiB, 768.0 MiB.
std::string show_bytes(int64_t bytes);
inline constexpr int64_t kMebibyte = 1 << 20;  // bytes in a MiB, for the axes of drawings

// While an UncountedMemory exists, tensors that this thread makes are not counted. It is for batches that are read ahead. Their number
// depends on the speed of threads, and a run's peak must not.
struct UncountedMemory {
  UncountedMemory();
  ~UncountedMemory();
};

// Calls `on_block` with the memory of each tensor that this thread makes on the device, before it is counted, and with -1 bytes when a
// tensor releases its memory. One per thread at a time.
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
