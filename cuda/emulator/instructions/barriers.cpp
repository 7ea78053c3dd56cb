// The places where threads of a block wait for each other: the block's barrier and the collectives of its warps.
#include <bit>
#include <cstring>

#include "cuda/emulator/block.h"

namespace emu {
namespace {

bool same_place(Loc a, Loc b) { return a.line == b.line && (a.file == b.file || !std::strcmp(a.file, b.file)); }

}  // namespace

int Block::barrier(bool predicate, Loc loc) {
  Quiet quiet;
  Thread& t = thread();
  char* tag = &tags_->barrier[t.barriers++ % 2];
  order_release(tag);
  if (options_.strict && live_ != n_threads_)
    fail("__syncthreads at " + describe(loc) + " after other threads of the block have returned: " + state());
  const unsigned bit = 1u << lane_;
  t.barrier = loc;
  if (arrived_ == 0) {
    barrier_at_ = loc;
    barriers_differ_ = false;
  }
  barriers_differ_ |= !same_place(loc, barrier_at_);
  votes_ += predicate;
  warp_->at_barrier |= bit;
  if (++arrived_ == live_) {
    release_barrier();
    warp_->ready &= ~bit;
  } else {
    yield();
  }
  order_acquire(tag);
  return barrier_result_;
}

void Block::release_barrier() {
  if (barriers_differ_) fail("divergent __syncthreads, the threads of the block met at different barriers: " + state());
  barrier_result_ = votes_;
  arrived_ = 0;
  votes_ = 0;
  ++steps_;
  proxy_.barrier(live_);
  for (unsigned w = 0; w < n_warps_; ++w) {
    warps_[w].ready |= warps_[w].at_barrier;
    warps_[w].at_barrier = 0;
  }
}

void Block::collective(const char* name, unsigned mask, void* payload, Resolve resolve, Loc loc, bool aligned) {
  Quiet quiet;
  Warp& warp = *warp_;
  const unsigned lane = lane_, bit = 1u << lane;
  if (!(mask & bit) || (options_.strict && mask & ~warp.live)) fail_mask(name, mask, loc);
  warp.arrivals[lane] = {name, resolve, mask, loc, aligned};
  warp.payloads[lane] = payload;
  warp.waiting |= bit;
  if (try_complete(warp, lane)) warp.ready &= ~bit;  // the last to arrive carries straight on
  else yield();
}

// Returns false if a lane of the mask has not arrived yet, or waits for other lanes first.
bool Block::try_complete(Warp& warp, unsigned lane) {
  const Arrival& first = warp.arrivals[lane];
  const unsigned lanes = first.mask & warp.live;
  if (lanes & ~warp.waiting) return false;
  for (unsigned rest = lanes; rest; rest &= rest - 1) {
    const Arrival& other = warp.arrivals[std::countr_zero(rest)];
    if (other.mask != first.mask) return false;
    if (other.resolve != first.resolve || (other.name != first.name && std::strcmp(other.name, first.name)))
      fail("the lanes of one mask met at different warp collectives: " + state());
    if (first.aligned && !same_place(other.loc, first.loc))
      fail("divergent " + std::string(first.name) + ", the lanes of the warp met at different lines: " + state());
  }
  first.resolve(warp.payloads, lanes);
  warp.waiting &= ~lanes;
  warp.ready |= lanes;
  ++steps_;
  return true;
}

void Block::warp_barrier(unsigned mask, Loc loc) {
  const unsigned w = warp_->index;
  // Atomic for ThreadSanitizer alone: a later block's thread counts on in the memory of an earlier one's.
  const unsigned number = mask == ~0u ? __atomic_fetch_add(&thread().warp_barriers, 1u, __ATOMIC_RELAXED) : 0;
  char* tag = mask == ~0u ? &tags_->warp[w][number % 2] : &tags_->partial_warp[w];
  order_release(tag);
  collective(
      "__syncwarp", mask, nullptr, [](void* const*, unsigned) {}, loc);
  order_acquire(tag);
}

void Block::poll() {
  Quiet quiet;
  warp_->polling |= 1u << lane_;
  yield();
}

void Block::thread_returned() {
  if (options_.strict) {
    check_nobody_waits();
    check_nothing_under_way();
  }
  Warp& warp = *warp_;
  warp.live &= ~(1u << lane_);
  --live_;
  ++steps_;
  // Threads that waited for this one alone go on.
  for (unsigned rest = warp.waiting; rest; rest &= rest - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
    if (warp.waiting >> lane & 1) try_complete(warp, lane);
  }
  if (live_ && arrived_ == live_) release_barrier();
}

}  // namespace emu
