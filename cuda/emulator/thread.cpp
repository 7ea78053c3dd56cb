// Runs a CUDA thread from its first to its last instruction: it gets a fiber, runs the kernel, and passes its stack to the next thread.
#include <utility>

#include "core/error.h"
#include "cuda/emulator/block.h"
#include "cuda/emulator/memory/device_memory.h"
#include "cuda/emulator/memory/sparse.h"

#if RICCI_TSAN
#define NEVER_RETURNS_TO_CALLER __attribute__((no_sanitize_thread))
#else
#define NEVER_RETURNS_TO_CALLER
#endif

namespace emu {

void Block::take_fiber(Thread& t) {
  Fiber& fiber = t.fibers[turn_];
  fiber.prepare(RICCI_TSAN && fiber.stack.bottom ? fiber.stack : stacks_.take(), &Block::entry);
  t.fiber = &fiber;
}

NEVER_RETURNS_TO_CALLER void Block::entry() {
  Block& block = *current_block;
  Fiber::begin(block.scheduler_);
  order_acquire(&block.start_tag_);
  block.run_threads();
  order_release(&block.end_tag_);
  Fiber::leave(*block.last_fiber_, block.scheduler_);
}

// A separate function, so its frame does not stay on the next thread's stack.
__attribute__((noinline)) void Block::run_threads() {
  while (run_thread() && continue_with_next_thread()) {
  }
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

// A thread that has not started yet reuses the stack of the thread that just returned. This saves a switch.
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

void Block::run_body() {
  const uintptr_t address = run_until_fault(body_, kernel_, thread().landing);
  if (!address) return;
  const DeviceRange nearest = nearest_allocation(address);
  fail_thread(ricci::format_message("it accesses byte {} of a device allocation of {} bytes",
      {static_cast<int64_t>(address - nearest.begin), static_cast<int64_t>(nearest.end - nearest.begin)}));
}

// Ends the other threads of a block after one has failed, to destroy the objects on their stacks.
void Block::unwind() {
  unwinding_ = true;
  for (unsigned i = 0; i < n_threads_; ++i)
    if (threads_[i].fiber) resume(warps_[i / kLanes], i % kLanes);
  unwinding_ = false;
}

}  // namespace emu
