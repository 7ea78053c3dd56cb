// One thread block. Its threads are fibers of one OS thread (see block.cpp).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>

#include "cuda/emulator/emulator.h"
#include "cuda/emulator/fiber.h"
#include "cuda/emulator/instructions/wgmma.h"
#include "cuda/emulator/memory/device_memory.h"
#include "cuda/emulator/memory/shared_memory.h"
#include "cuda/emulator/thread.h"

namespace emu {

// Tags of ThreadSanitizer for barriers. Two tags are used alternately: a thread that is already at the next barrier must not order anything
// yet.
struct OrderTags {
  char barrier[2];
  char warp[kMaxThreads / kLanes][2];
  char partial_warp[kMaxThreads / kLanes];  // __syncwarp of some lanes
};

class Block {
 public:
  Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // Between begin_launch and end_launch, this OS thread's device functions act on this object.
  void begin_launch(const Launch& launch, void (*body)(const void*), const void* kernel);
  bool run(uint3 index, uint64_t seed);  // returns false if the block failed, see `error`
  void end_launch();
  std::exception_ptr error;

  // Between these two calls, looks for the first thread that changes the byte. stop_watching() returns the thread's name, or an empty text.
  void watch(const unsigned char* byte);
  std::string stop_watching();
  bool found_writer() const { return !writer_.empty(); }

  // These are called by the running CUDA thread.
  void barrier(Loc loc);
  void collective(const char* name, unsigned mask, void* payload, Resolve resolve, Loc loc, bool aligned = false);
  void warp_barrier(unsigned mask, Loc loc);
  void poll();
  [[noreturn]] void fail(const std::string& what) const;         // adds the kernel and the block to the message
  [[noreturn]] void fail_thread(const std::string& what) const;  // adds the running thread as well

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
  bool in_device_memory(const void* p, size_t bytes);  // true if all bytes are in one allocation
  const Launch& launch() const { return *launch_; }
  std::string running_thread() const;  // "thread 3 of block 7"

 private:
  struct Abandon {};  // unwinds the other threads of a block after one fails
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
  std::string state() const;  // the waiting threads and their lines
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
  Fiber* last_fiber_ = nullptr;  // the fiber of the last thread that returned
  Stacks stacks_;
  std::array<Warp, kMaxThreads / kLanes> warps_;
  std::unique_ptr<Thread[]> threads_;
  unsigned live_ = 0, arrived_ = 0;  // threads that have not returned; threads that wait at the barrier
  Loc barrier_at_{};                 // source line of the first thread at the barrier
  bool barriers_differ_ = false;
  bool unwinding_ = false;
  uint64_t steps_ = 0;  // barriers, collectives and returns, but not polls
  uint64_t random_ = 1;
  const unsigned char* watched_ = nullptr;
  unsigned char watched_value_ = 0;
  std::string writer_;
  unsigned turn_ = 0;  // index of the fiber that each thread uses
  SharedMemory shared_;
  Warpgroups warpgroups_;
  AsyncProxy proxy_;
  DeviceRange looked_up_;  // the last allocation that in_device_memory found
  char start_tag_ = 0, end_tag_ = 0;
  std::unique_ptr<OrderTags> tags_;
};

// The block that this OS thread runs; null outside launches.
extern constinit thread_local Block* current_block;

}  // namespace emu
