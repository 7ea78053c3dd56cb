#include "cuda/emulator/instructions/collectives.h"

#include <bit>

#include "cuda/emulator/block.h"

namespace emu {
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
                          std::to_string(mine.source) + ", which takes no part");
    mine.result = static_cast<const ShuffleLane*>(payloads[mine.source])->value;
  });
}

// The lane to read from. As in PTX: the segment's end bounds all but `index`, which wraps around; a lane outside gives one's own.
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

int64_t combine(Fold kind, int64_t a, int64_t b) {
  switch (kind) {
    case Fold::add: return a + b;
    case Fold::min: return b < a ? b : a;
    case Fold::max: return a < b ? b : a;
    case Fold::bit_and: return a & b;
    case Fold::bit_or: return a | b;
    case Fold::bit_xor: return a ^ b;
  }
  return a;
}

template <Fold kind> void resolve_fold(void* const* payloads, unsigned lanes) {
  int64_t result = *static_cast<int64_t*>(payloads[std::countr_zero(lanes)]);
  for_lanes(lanes & (lanes - 1), [&](unsigned l) { result = combine(kind, result, *static_cast<int64_t*>(payloads[l])); });
  for_lanes(lanes, [&](unsigned l) { *static_cast<int64_t*>(payloads[l]) = result; });
}

}  // namespace

void collective(const char* name, unsigned mask, void* payload, Resolve resolve, Loc loc) {
  current_block->collective(name, mask, payload, resolve, loc);
}
void fail_thread(const char* what, Loc loc) { current_block->fail_thread(std::string(what) + " at " + describe(loc)); }
unsigned lane() { return current_block->lane(); }
int barrier(bool predicate, Loc loc) { return current_block->barrier(predicate, loc); }
void __syncwarp(unsigned mask, Loc loc) { current_block->warp_barrier(mask, loc); }
void poll() { current_block->poll(); }

void fence() {
#if RICCI_TSAN
  // ThreadSanitizer knows no fences: each orders all that came before it anywhere with what follows.
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
  if (width < 1 || width > warpSize || width & (width - 1))
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

int64_t fold(Fold kind, unsigned mask, int64_t value, Loc loc) {
  struct Kind {
    const char* name;
    Resolve resolve;
  };
  constexpr Kind kinds[] = {{"__reduce_add_sync", &resolve_fold<Fold::add>}, {"__reduce_min_sync", &resolve_fold<Fold::min>},
      {"__reduce_max_sync", &resolve_fold<Fold::max>}, {"__reduce_and_sync", &resolve_fold<Fold::bit_and>},
      {"__reduce_or_sync", &resolve_fold<Fold::bit_or>}, {"__reduce_xor_sync", &resolve_fold<Fold::bit_xor>}};
  const Kind& it = kinds[static_cast<int>(kind)];
  current_block->collective(it.name, mask, &value, it.resolve, loc);
  return value;
}

}  // namespace emu
