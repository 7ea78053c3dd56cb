#include "cuda/emulator/block.h"

#include <bit>
#include <utility>

#include "core/error.h"
#include "cuda/emulator/memory/sparse.h"

#if RICCI_TSAN
#define NEVER_RETURNS_TO_CALLER __attribute__((no_sanitize_thread))
#else
#define NEVER_RETURNS_TO_CALLER
#endif

namespace emu {

constinit thread_local Block* current_block = nullptr;

Block::Block() : threads_(new Thread[kMaxThreads]), tags_(std::make_unique<OrderTags>()) {
  for (unsigned w = 0; w < warps_.size(); ++w) warps_[w].index = w;
}

void Block::begin_launch(const Launch& launch, void (*body)(const void*), const void* kernel) {
  launch_ = &launch;
  body_ = body;
  kernel_ = kernel;
  error = nullptr;
  looked_up_ = {};
  options_ = options();
  const dim3 size = launch.block;
  n_threads_ = size.x * size.y * size.z;
  n_warps_ = (n_threads_ + kLanes - 1) / kLanes;
  if (size.x != indexed_for_.x || size.y != indexed_for_.y || size.z != indexed_for_.z)
    for (unsigned i = 0; i < n_threads_; ++i) threads_[i].index = {i % size.x, i / size.x % size.y, i / (size.x * size.y)};
  indexed_for_ = size;
  blockDim = size;
  gridDim = launch.grid;
  scheduler_.adopt();
  order_release(&start_tag_);
  current_block = this;
}

void Block::end_launch() {
  current_block = nullptr;
  order_acquire(&end_tag_);
}

bool Block::in_device_memory(const void* p, size_t bytes) {
  Quiet quiet;
  const auto address = reinterpret_cast<uintptr_t>(p);
  if (!looked_up_.contains(address, bytes)) looked_up_ = allocation_around(address);
  return looked_up_.contains(address, bytes);
}

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

void Block::start(uint64_t seed) {
  random_ = (seed + 1) * 0x9e3779b97f4a7c15u | 1;
  for (unsigned w = 0; w < n_warps_; ++w) {
    const unsigned lanes = n_threads_ - w * kLanes;
    warps_[w].live = warps_[w].ready = lanes >= kLanes ? ~0u : (1u << lanes) - 1;
    warps_[w].waiting = warps_[w].at_barrier = warps_[w].polling = 0;
  }
  live_ = n_threads_;
  arrived_ = 0;
  votes_ = 0;
  turn_ = (turn_ + 1) % kFibersPerThread;
  if (RICCI_TSAN) {
    tags_.reset();  // what it ordered is forgotten: the barriers of one block order nothing in the next
    tags_ = std::make_unique<OrderTags>();
    for (unsigned i = 0; i < n_threads_; ++i) threads_[i].barriers = threads_[i].warp_barriers = 0;
  }
  shared_.begin_block(launch_->dynamic_shared_bytes);
  warpgroups_.begin_block(n_warps_);
  proxy_.begin_block();
}

void Block::schedule() {
  const uint64_t limit = options_.max_polls * (options_.workers > 1 ? uint64_t{1000} : uint64_t{1});
  uint64_t polls = 0, seen = steps_;
  while (live_ && !error) {
    if (run_ready_warps()) continue;
    polls = seen == steps_ ? polls + 1 : 0;
    seen = steps_;
    if (polls > limit) fail("threads wait in a loop for something that no other thread does: " + state());
    if (!wake_pollers()) fail("deadlock, no thread of the block can go on: " + state());
  }
}

// Lets every warp run until none of its lanes can go on. Returns false if no warp could.
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

bool Block::wake_pollers() {
  bool any = false;
  for (unsigned w = 0; w < n_warps_; ++w) {
    any |= warps_[w].polling != 0;
    warps_[w].ready |= warps_[w].polling;
    warps_[w].polling = 0;
  }
  return any;
}

// Ends what is left of a block in which one thread failed, so that nothing its threads hold is lost.
void Block::unwind() {
  unwinding_ = true;
  for (unsigned i = 0; i < n_threads_; ++i)
    if (threads_[i].fiber) resume(warps_[i / kLanes], i % kLanes);
  unwinding_ = false;
}

void Block::finish(uint64_t seed) {
  if (const std::string fault = warpgroups_.unfinished(); !fault.empty()) fail(fault);
  const SharedMemory::Damage damage = shared_.damage();
  if (!damage.variable) return;
  const std::string who = find_writer(damage, seed);
  throw ricci::Error(ricci::format_message("{}{}: {} of {} bytes was written out of bounds, at byte {}{}",
      {prefix(), who.empty() ? block_name() : who, damage.variable, damage.bytes, damage.position, launched_at()}));
}

// ---- the writer of what must not be written: found by doing it again. Data that the first run changed may lead the second elsewhere.

// Runs the block again and looks at the byte of shared memory whenever a thread stops.
std::string Block::find_writer(const SharedMemory::Damage& damage, uint64_t seed) {
  start(seed);
  watch(shared_.repaired(damage));
  try {
    schedule();
  } catch (const ricci::Error&) {  // the first run found a mistake already
  }
  unwind();
  error = nullptr;
  return stop_watching();
}

void Block::watch(const unsigned char* byte) {
  watched_ = byte;
  watched_value_ = *byte;
}

std::string Block::stop_watching() {
  watched_ = nullptr;
  return std::exchange(writer_, {});
}

void Block::look_at_watched_byte() {
  if (!watched_ || *watched_ == watched_value_) return;
  writer_ = running_thread();
  watched_ = nullptr;
}

// ---- threads as fibers

uint64_t Block::next_random() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_ >> 16;
}

unsigned Block::pick(const Warp& warp) {
  if (options_.order == Options::Order::forward) return static_cast<unsigned>(std::countr_zero(warp.ready));
  if (options_.order == Options::Order::reverse) return kLanes - 1 - static_cast<unsigned>(std::countl_zero(warp.ready));
  const unsigned first = static_cast<unsigned>(next_random() % kLanes);
  const unsigned from_first = std::rotr(warp.ready, static_cast<int>(first));
  return (static_cast<unsigned>(std::countr_zero(from_first)) + first) % kLanes;
}

// Makes a thread the running one; the switch to its fiber comes next.
void Block::enter(Warp& warp, unsigned lane) {
  Thread& t = threads_[warp.index * kLanes + lane];
  if (!t.fiber) {
    Fiber& fiber = t.fibers[turn_];
    fiber.prepare(RICCI_TSAN && fiber.stack.bottom ? fiber.stack : stacks_.take(), &Block::entry);
    t.fiber = &fiber;
  }
  warp_ = &warp;
  lane_ = lane;
  warp.ready &= ~(1u << lane);
  threadIdx = t.index;
}

void Block::resume(Warp& warp, unsigned lane) {
  enter(warp, lane);
  Fiber::switch_to(scheduler_, *thread().fiber);
}

// The running thread has to wait: on with another lane of its warp if one can run, else with the scheduler.
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

NEVER_RETURNS_TO_CALLER void Block::entry() {
  Block& block = *current_block;
  Fiber::begin(block.scheduler_);
  order_acquire(&block.start_tag_);
  block.run_threads();
  order_release(&block.end_tag_);
  Fiber::leave(*block.last_fiber_, block.scheduler_);
}

// In a function of its own, so that nothing of its frame is left on the stack that the next fiber gets.
__attribute__((noinline)) void Block::run_threads() {
  while (run_thread() && continue_with_next_thread()) {
  }
}

void Block::run_body() {
  const uintptr_t address = run_until_fault(body_, kernel_, thread().landing);
  if (!address) return;
  const DeviceRange nearest = nearest_allocation(address);
  fail_thread(ricci::format_message("an access at byte {} of a device allocation of {} bytes",
      {static_cast<int64_t>(address - nearest.begin), static_cast<int64_t>(nearest.end - nearest.begin)}));
}

// Returns false if the block has failed.
bool Block::run_thread() {
  try {
    options_.ends ? run_body() : body_(kernel_);
    Quiet quiet;
    if (watched_) look_at_watched_byte();
    thread_returned();
  } catch (const Abandon&) {
  } catch (...) {
    Quiet quiet;
    if (!error) error = std::current_exception();
  }
  Quiet quiet;
  thread().copies.forget();
  thread().products.forget();
  last_fiber_ = thread().fiber;
  thread().fiber = nullptr;
  if (!error) return true;
  if (!RICCI_TSAN) stacks_.give_back(last_fiber_->stack);
  return false;
}

// A thread that has not started yet takes over the stack of the one that has just returned, without any switch.
bool Block::continue_with_next_thread() {
  if (RICCI_TSAN) return false;
  if (warp_->ready) {
    const unsigned next = pick(*warp_);
    Thread& t = threads_[warp_->index * kLanes + next];
    if (!t.fiber) {
      t.fiber = &t.fibers[0];
      t.fiber->stack = last_fiber_->stack;
      enter(*warp_, next);
      return true;
    }
  }
  stacks_.give_back(last_fiber_->stack);
  return false;
}

}  // namespace emu
