#include "cuda/emulator/instructions/collectives.h"

#include <bit>
#include <cstring>

#include "cuda/emulator/block.h"
#include "cuda/emulator/report.h"

namespace emu {

// ---- Waiting for the lanes of a mask

void Block::collective(const char* name, unsigned mask, void* payload, Resolve resolve, Loc loc, bool aligned) {
  Quiet quiet;
  Warp& warp = *warp_;
  const unsigned lane = lane_, bit = 1u << lane;
  if (!(mask & bit) || mask & ~warp.live) fail_mask(name, mask, loc);
  warp.arrivals[lane] = {name, resolve, mask, loc, aligned};
  warp.payloads[lane] = payload;
  warp.waiting |= bit;
  if (try_complete(warp, lane)) warp.ready &= ~bit;  // the last lane does not wait
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
      fail("the lanes of one mask wait at different warp collectives: " + state());
    if (first.aligned && !same_place(other.loc, first.loc))
      fail("divergent " + std::string(first.name) + " (the lanes of the warp wait at different lines): " + state());
  }
  first.resolve(warp.payloads, lanes);
  warp.waiting &= ~lanes;
  warp.ready |= lanes;
  ++steps_;
  return true;
}

void Block::warp_barrier(unsigned mask, Loc loc) {
  const unsigned w = warp_->index;
  // Atomic only for ThreadSanitizer: a thread of the next block continues the same count.
  const unsigned number = mask == ~0u ? __atomic_fetch_add(&thread().warp_barriers, 1u, __ATOMIC_RELAXED) : 0;
  char* tag = mask == ~0u ? &tags_->warp[w][number % 2] : &tags_->partial_warp[w];
  order_release(tag);
  collective(
      "__syncwarp", mask, nullptr, [](void* const*, unsigned) {}, loc);
  order_acquire(tag);
}

void Block::thread_returned() {
  check_nobody_waits();
  check_nothing_under_way();
  Warp& warp = *warp_;
  warp.live &= ~(1u << lane_);
  --live_;
  ++steps_;
  // Threads that only waited for this one can continue.
  for (unsigned rest = warp.waiting; rest; rest &= rest - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
    if (warp.waiting >> lane & 1) try_complete(warp, lane);
  }
  if (live_ && arrived_ == live_) release_barrier();
}

// ---- The collectives

namespace {

template <class F> void for_lanes(unsigned lanes, F f) {
  for (; lanes; lanes &= lanes - 1) f(static_cast<unsigned>(std::countr_zero(lanes)));
}

struct ShuffleLane {
  uint64_t value, result;
  unsigned source;
  Loc loc;
};

void resolve_shuffle(void* const* payloads, unsigned lanes) {
  for_lanes(lanes, [&](unsigned l) {
    ShuffleLane& mine = *static_cast<ShuffleLane*>(payloads[l]);
    if (!(lanes >> mine.source & 1))
      current_block->fail("shuffle at " + describe(mine.loc) + ": lane " + std::to_string(l) + " reads lane " +
                          std::to_string(mine.source) + ", but that lane does not take part");
    mine.result = static_cast<const ShuffleLane*>(payloads[mine.source])->value;
  });
}

// The lane to read from. As in PTX, `index` wraps around in its segment. For the other kinds, a lane reads its own value if the source lane
// is outside the segment.
unsigned source_lane(Shuffle kind, unsigned lane, unsigned argument, unsigned width) {
  const unsigned begin = lane & ~(width - 1), last = begin + width - 1, by = argument % kLanes;
  switch (kind) {
    case Shuffle::index: return begin | (argument & (width - 1));
    case Shuffle::up: return lane - begin >= by ? lane - by : lane;
    case Shuffle::down: return lane + by <= last ? lane + by : lane;
    case Shuffle::exclusive_or: return (lane ^ by) <= last ? lane ^ by : lane;
  }
  return lane;
}

struct BallotLane {
  bool predicate;
  unsigned result;
};

void resolve_ballot(void* const* payloads, unsigned lanes) {
  unsigned result = 0;
  for_lanes(lanes, [&](unsigned l) { result |= unsigned{static_cast<BallotLane*>(payloads[l])->predicate} << l; });
  for_lanes(lanes, [&](unsigned l) { static_cast<BallotLane*>(payloads[l])->result = result; });
}

struct MatchLane {
  uint64_t value;
  unsigned result;
};

void resolve_match(void* const* payloads, unsigned lanes) {
  const auto payload_of = [&](unsigned l) -> MatchLane& { return *static_cast<MatchLane*>(payloads[l]); };
  for_lanes(lanes, [&](unsigned l) {
    payload_of(l).result = 0;
    for_lanes(lanes, [&](unsigned other) { payload_of(l).result |= unsigned{payload_of(other).value == payload_of(l).value} << other; });
  });
}

}  // namespace

void collective(const char* name, unsigned mask, void* payload, Resolve resolve, Loc loc) {
  current_block->collective(name, mask, payload, resolve, loc);
}
void fail_thread(const char* what, Loc loc) { current_block->fail_thread(std::string(what) + " at " + describe(loc)); }
unsigned lane() { return current_block->lane(); }
void barrier(Loc loc) { current_block->barrier(loc); }
void __syncwarp(unsigned mask, Loc loc) { current_block->warp_barrier(mask, loc); }
void poll() { current_block->poll(); }

void fence() {
#if RICCI_TSAN
  // ThreadSanitizer does not support fences. Here, each fence orders everything before it, in any thread, with everything after it.
  static char tag;
  order_release(&tag);
  order_acquire(&tag);
#endif
  __sync_synchronize();
}

uint64_t shuffle(Shuffle kind, unsigned mask, uint64_t value, unsigned argument, int width, Loc loc) {
  constexpr const char* names[] = {"__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync"};
  const char* name = names[static_cast<int>(kind)];
  Block& block = *current_block;
  if (width < 1 || width > 32 || width & (width - 1))
    block.fail_thread(
        std::string(name) + " at " + describe(loc) + ": width is " + std::to_string(width) + ", expected 1, 2, 4, 8, 16 or 32");
  ShuffleLane payload{value, 0, source_lane(kind, block.lane(), argument, static_cast<unsigned>(width)), loc};
  block.collective(name, mask, &payload, &resolve_shuffle, loc);
  return payload.result;
}

unsigned ballot(const char* name, unsigned mask, bool predicate, Loc loc) {
  BallotLane payload{predicate, 0};
  current_block->collective(name, mask, &payload, &resolve_ballot, loc);
  return payload.result;
}

unsigned match(unsigned mask, uint64_t value, Loc loc) {
  MatchLane payload{value, 0};
  current_block->collective("__match_any_sync", mask, &payload, &resolve_match, loc);
  return payload.result;
}

}  // namespace emu
