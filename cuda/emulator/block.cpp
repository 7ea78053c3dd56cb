// Runs one thread block on one CPU thread. Each CUDA thread is a fiber: a stack and a few saved registers (fiber.h). A fiber runs until its
// CUDA thread has to wait, for example at __syncthreads, and then switches to another fiber. A block needs up to 1,024 threads, and the
// operating system would run OS threads in a different order each time. The scheduler is the fiber that started the block.
//
//   scheduler
//      |  resume
//      v          yield           yield               yield
//   warp 0:  thread 0 ---> thread 1 ---> ... ---> thread 31 ---> scheduler      Each thread stops at the barrier ...
//   warp 1:  thread 32 --> thread 33 --> ... ---> thread 63                     ... but the last of the block does not: it makes all
//            (resumed by the scheduler)              |                          threads of all warps ready again, and continues.
//                                                    v
//                                              release_barrier
//
// So a kernel computes the same result in every run, and the scheduler knows why each thread waits. If no thread is ready and none ever
// will be, a GPU hangs silently. Here, the launch ends with a one-line error:
//   scale: block 0: deadlock (no thread of the block can continue): threads 0-15 at __shfl_xor_sync scale.cu:7 with mask 0xffffffff;
//   threads 16-63 at __syncthreads scale.cu:9 (launched at scale.cu:20)
#include "cuda/emulator/block.h"

#include <bit>
#include <map>
#include <utility>

#include "cuda/emulator/report.h"

namespace emu {

bool Block::run(uint3 index, uint64_t seed) {
  blockIdx = index;
  try {
    start(seed);
    schedule();
    if (!error) finish(seed);
  } catch (...) {
    error = std::current_exception();
  }
  if (error) unwind();
  return !error;
}

// ---- The scheduler

void Block::schedule() {
  const uint64_t limit = options_.max_polls * (options_.workers > 1 ? uint64_t{1000} : uint64_t{1});
  uint64_t polls = 0, seen = steps_;
  while (live_ && !error) {
    if (run_ready_warps()) continue;
    polls = seen == steps_ ? polls + 1 : 0;  // successive rounds with only polling
    seen = steps_;
    if (polls > limit) fail("threads wait in a loop for a change that no other thread makes: " + state());
    if (!wake_pollers()) fail("deadlock (no thread of the block can continue): " + state());
  }
}

// Lets every warp run until none of its threads is ready. Returns false if no thread was ready.
bool Block::run_ready_warps() {
  bool ran = false;
  const unsigned first = options_.order == Options::Order::random ? static_cast<unsigned>(next_random() % n_warps_) : 0;
  for (unsigned k = 0; k < n_warps_; ++k) {
    unsigned w = options_.order == Options::Order::reverse ? n_warps_ - 1 - k : k + first;
    if (w >= n_warps_) w -= n_warps_;
    for (; warps_[w].ready && !error; ran = true) resume(warps_[w], pick(warps_[w]));
  }
  return ran;
}

// Lets threads that loop with __nanosleep check their condition again. Another thread may have written meanwhile.
bool Block::wake_pollers() {
  bool any = false;
  for (unsigned w = 0; w < n_warps_; ++w) {
    any |= warps_[w].polling != 0;
    warps_[w].ready |= warps_[w].polling;
    warps_[w].polling = 0;
  }
  return any;
}

// Describes all threads: "threads 0-63 at __syncthreads kernel.cu:12; threads 64-127 returned".
std::string Block::state() const {
  std::map<std::string, std::vector<unsigned>> groups;
  for (unsigned i = 0; i < n_threads_; ++i) groups[thread_state(i)].push_back(i);
  std::string text;
  for (const auto& [what, threads] : groups)
    text += (text.empty() ? "" : "; ") + std::string(threads.size() > 1 ? "threads " : "thread ") + ranges(threads) + " " + what;
  return text;
}

// ---- Switches between the fibers

// Called by the scheduler: runs this thread. Returns when a fiber switches back to the scheduler.
void Block::resume(Warp& warp, unsigned lane) {
  enter(warp, lane);
  Fiber::switch_to(scheduler_, *thread().fiber);
}

// Makes this thread the running one, before the switch to its fiber.
void Block::enter(Warp& warp, unsigned lane) {
  Thread& t = threads_[warp.index * kLanes + lane];
  if (!t.fiber) take_fiber(t);
  warp_ = &warp;
  lane_ = lane;
  warp.ready &= ~(1u << lane);
  threadIdx = t.index;
}

// Called when the running thread has to wait. Another ready thread of its warp runs, or the scheduler. Returns when this thread is resumed.
void Block::yield() {
  if (watched_) look_at_watched_byte();
  Fiber& from = *thread().fiber;
  if (warp_->ready) {
    enter(*warp_, pick(*warp_));
    Fiber::switch_to(from, *thread().fiber);
  } else {
    Fiber::switch_to(from, scheduler_);
  }
  if (unwinding_) throw Abandon{};
}

// Picks the ready lane that runs next. A missing barrier shows as a result that differs between the three orders.
unsigned Block::pick(const Warp& warp) {
  if (options_.order == Options::Order::forward) return static_cast<unsigned>(std::countr_zero(warp.ready));
  if (options_.order == Options::Order::reverse) return kLanes - 1 - static_cast<unsigned>(std::countl_zero(warp.ready));
  const unsigned first = static_cast<unsigned>(next_random() % kLanes);
  const unsigned rotated = std::rotr(warp.ready, static_cast<int>(first));
  return (static_cast<unsigned>(std::countr_zero(rotated)) + first) % kLanes;
}

uint64_t Block::next_random() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_ >> 16;
}

// ---- The barrier

// Executes __syncthreads of the running thread at this line. For ThreadSanitizer (Quiet and the tags), only a barrier orders two threads.
void Block::barrier(Loc loc) {
  Quiet quiet;
  Thread& t = thread();
  char* tag = &tags_->barrier[t.barriers++ % 2];
  order_release(tag);
  if (live_ != n_threads_) fail("__syncthreads at " + describe(loc) + " after other threads of the block have returned: " + state());
  const unsigned bit = 1u << lane_;
  t.barrier = loc;
  if (arrived_ == 0) {
    barrier_at_ = loc;
    barriers_differ_ = false;
  }
  barriers_differ_ |= !same_place(loc, barrier_at_);
  warp_->at_barrier |= bit;
  if (++arrived_ == live_) {
    release_barrier();
    warp_->ready &= ~bit;
  } else {
    yield();
  }
  order_acquire(tag);
}

void Block::release_barrier() {
  if (barriers_differ_) fail("divergent __syncthreads (the threads of the block wait at different barriers): " + state());
  arrived_ = 0;
  ++steps_;
  proxy_.barrier(live_);
  for (unsigned w = 0; w < n_warps_; ++w) {
    warps_[w].ready |= warps_[w].at_barrier;
    warps_[w].at_barrier = 0;
  }
}

void Block::poll() {
  Quiet quiet;
  warp_->polling |= 1u << lane_;
  yield();
}

bool Block::in_device_memory(const void* p, size_t bytes) {
  Quiet quiet;
  const auto address = reinterpret_cast<uintptr_t>(p);
  if (!looked_up_.contains(address, bytes)) looked_up_ = allocation_around(address);
  return looked_up_.contains(address, bytes);
}

}  // namespace emu
