// One thread block and its threads, as fibers of one OS thread. block.cpp explains how they run.
#pragma once
#include <array>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cuda/emulator/emulator.h"
#include "cuda/emulator/fiber.h"
#include "cuda/emulator/instructions/wgmma.h"
#include "cuda/emulator/memory/shared_memory.h"

namespace emu {

inline constexpr unsigned kMaxThreads = 1024, kLanes = 32;

// For ThreadSanitizer a fiber is a thread, and a thread cannot race with itself, so neighbouring blocks use different fibers. A stack that
// multiple fibers use would look like a race, so each fiber keeps its own stack then.
inline constexpr unsigned kFibersPerThread = RICCI_TSAN ? 2 : 1;

// The asynchronous copies of one CUDA thread. They arrive when it waits for them and not before, because they can be that late on a GPU.
class AsyncCopies {
 public:
  void begin(void* target, const void* source, size_t bytes, size_t source_bytes, Loc loc);
  void commit() { ++groups_; }
  void wait(unsigned groups_left);
  void wait_for_all() { arrive(groups_ + 1); }

  const Loc* under_way() const { return copies_.empty() ? nullptr : &copies_.front().loc; }
  void forget() {
    copies_.clear();
    groups_ = 0;
  }

 private:
  struct Copy {
    void* target;
    const void* source;
    size_t bytes, source_bytes;
    unsigned group;  // the number of groups closed before it
    Loc loc;
  };
  void arrive(unsigned groups);  // the first `groups` of them
  std::vector<Copy> copies_;     // in the order of their starts
  unsigned groups_ = 0;          // closed
};

struct alignas(64) Thread {
  uint3 index{};
  unsigned barriers = 0, warp_barriers = 0;
  Loc barrier{};           // its last barrier
  Fiber* fiber = nullptr;  // null before the first and after the last instruction
  Fiber fibers[kFibersPerThread];
  AsyncCopies copies;
  AsyncProducts products;
  void* landing = nullptr;  // sparse.h
};

// The record of a lane that has arrived at a collective.
struct Arrival {
  const char* name;
  Resolve resolve;
  unsigned mask;
  Loc loc;
  bool aligned;  // all lanes must be at the same instruction, not only at the same kind
};

struct Warp {
  unsigned index = 0;
  unsigned live = 0, ready = 0, waiting = 0, at_barrier = 0, polling = 0;  // bit masks of lanes
  Arrival arrivals[kLanes];
  void* payloads[kLanes];
};

// Tags of ThreadSanitizer for barriers. Two take turns, because a thread that is already at the next barrier must not order anything yet.
struct OrderTags {
  char barrier[2];
  char warp[kMaxThreads / kLanes][2];
  char partial_warp[kMaxThreads / kLanes];  // __syncwarp of some lanes
};

// An allocation of device memory.
struct DeviceRange {
  uintptr_t begin = 0, end = 0;
  bool contains(uintptr_t first, size_t bytes) const { return first >= begin && first + bytes <= end; }
};
DeviceRange allocation_around(uintptr_t address);   // empty without one
DeviceRange nearest_allocation(uintptr_t address);  // empty without device memory

class Block {
 public:
  Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // Between begin_launch and end_launch this OS thread's device functions belong to this object.
  void begin_launch(const Launch& launch, void (*body)(const void*), const void* kernel);
  bool run(uint3 index, uint64_t seed);  // returns false if it failed, see `error`
  void end_launch();
  std::exception_ptr error;

  // Between the two calls, finds the first thread that changes that byte. Returns its name, or an empty text.
  void watch(const unsigned char* byte);
  std::string stop_watching();
  bool found_writer() const { return !writer_.empty(); }

  // Called by the running CUDA thread.
  void barrier(Loc loc);
  void collective(const char* name, unsigned mask, void* payload, Resolve resolve, Loc loc, bool aligned = false);
  void warp_barrier(unsigned mask, Loc loc);
  void poll();
  [[noreturn]] void fail(const std::string& what) const;         // adds the kernel and the block
  [[noreturn]] void fail_thread(const std::string& what) const;  // and the running thread

  unsigned lane() const { return lane_; }
  unsigned warp() const { return warp_->index; }
  SharedMemory& shared() { return shared_; }
  AsyncCopies& copies() { return thread().copies; }
  AsyncProducts& products() { return thread().products; }
  Warpgroups& warpgroups() { return warpgroups_; }
  const AsyncProxy& proxy() const { return proxy_; }
  void fence_proxy_async() { proxy_.fence(warp_->index * kLanes + lane_, live_, shared_); }
  void copies_arrived() { proxy_.written(warp_->index * kLanes + lane_); }
  void* landing() { return thread().landing; }
  bool in_device_memory(const void* p, size_t bytes);  // all of it in one allocation
  const Launch& launch() const { return *launch_; }
  std::string running_thread() const;  // "thread 3 of block 7"

 private:
  struct Abandon {};  // unwinds the other threads of a block after one has failed
  static void entry();
  void run_threads();
  bool run_thread();
  void run_body();
  bool continue_with_next_thread();

  Thread& thread() { return threads_[warp_->index * kLanes + lane_]; }
  void enter(Warp& warp, unsigned lane);
  void take_fiber(Thread& t);
  void resume(Warp& warp, unsigned lane);
  void yield();
  unsigned pick(const Warp& warp);
  uint64_t next_random();

  void start(uint64_t seed);
  void schedule();
  bool run_ready_warps();
  bool wake_pollers();
  void unwind();
  void finish(uint64_t seed);
  std::string find_writer(const SharedMemory::Damage& damage, uint64_t seed);
  void look_at_watched_byte();

  void release_barrier();
  bool try_complete(Warp& warp, unsigned lane);
  [[noreturn]] void fail_mask(const char* name, unsigned mask, Loc loc) const;
  void thread_returned();
  void check_nobody_waits() const;
  void check_nothing_under_way();

  std::string thread_state(unsigned thread) const;
  std::string state() const;  // which threads wait where
  std::string prefix() const;
  std::string block_name() const;
  std::string launched_at() const;

  const Launch* launch_ = nullptr;
  void (*body_)(const void*) = nullptr;
  const void* kernel_ = nullptr;
  Options options_;
  unsigned n_threads_ = 0, n_warps_ = 0;
  dim3 indexed_for_{0, 0, 0};

  Warp* warp_ = nullptr;  // the running thread is this lane of this warp
  unsigned lane_ = 0;
  Fiber scheduler_;
  Fiber* last_fiber_ = nullptr;  // the last thread that returned ran on it
  Stacks stacks_;
  std::array<Warp, kMaxThreads / kLanes> warps_;
  std::unique_ptr<Thread[]> threads_;
  unsigned live_ = 0, arrived_ = 0;  // threads that have not returned; that wait at the barrier
  Loc barrier_at_{};                 // the place of the first thread
  bool barriers_differ_ = false;
  bool unwinding_ = false;
  uint64_t steps_ = 0;  // barriers, collectives and returns, but not polls
  uint64_t random_ = 1;
  const unsigned char* watched_ = nullptr;
  unsigned char watched_value_ = 0;
  std::string writer_;
  unsigned turn_ = 0;  // the index of the fiber that each thread uses
  SharedMemory shared_;
  Warpgroups warpgroups_;
  AsyncProxy proxy_;
  DeviceRange looked_up_;  // the allocation that in_device_memory found last
  char start_tag_ = 0, end_tag_ = 0;
  std::unique_ptr<OrderTags> tags_;
};

// The block that this OS thread runs; null outside launches.
extern constinit thread_local Block* current_block;

std::string describe(Loc loc);
bool same_place(Loc a, Loc b);
std::string ranges(const std::vector<unsigned>& numbers);  // "0-31, 40, 42" of ascending numbers, at most six ranges
std::string position(uint3 index, dim3 size);              // "7", or "(7, 0, 1)" in more than one dimension

// While a launch runs, kernels have access to device memory.
void show_device_memory();
void hide_device_memory();

void for_each_allocation(const std::function<void(unsigned char* data, size_t bytes)>& f);

bool is_device_memory(uintptr_t address);  // true if it is in an allocation or in its red zones

// Device memory that was released but could still be in use by mistake: it is filled with NaN until it is given back.
struct Retired {
  unsigned char *front, *data;  // front: the red zone before data; sparse memory is zero and is not searched for writes
  bool is_sparse;
  size_t bytes, all_bytes;
};
Retired retire(void* device);
size_t give_back(const Retired& memory);  // the first byte that was written since; its size if none was

void check_launch(const Launch& launch);                                       // sizes
void check_arguments(const Launch& launch, const void* kernel, size_t bytes);  // refuses pointers to memory of the CPU

// A write past the end of an allocation of `bytes` bytes; the pointer is null without one.
struct DeviceDamage {
  unsigned char* byte = nullptr;
  ptrdiff_t offset = 0;
  size_t bytes = 0;
};
DeviceDamage repair_device_memory();  // finds and repairs one damaged red zone

}  // namespace emu
