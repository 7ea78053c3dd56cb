// One CUDA thread as a fiber, and its warp.
#pragma once
#include "cuda/emulator/emulator.h"
#include "cuda/emulator/fiber.h"
#include "cuda/emulator/instructions/async_copies.h"
#include "cuda/emulator/instructions/wgmma.h"

namespace emu {

inline constexpr unsigned kMaxThreads = 1024, kLanes = 32;

// For ThreadSanitizer, a fiber is a thread, and a thread cannot race with itself, so successive blocks use different fibers. A shared stack
// would look like a race, so each fiber keeps its own stack.
inline constexpr unsigned kFibersPerThread = RICCI_TSAN ? 2 : 1;

struct alignas(64) Thread {
  uint3 index{};
  unsigned barriers = 0, warp_barriers = 0;
  Loc barrier{};           // source line of its last barrier
  Fiber* fiber = nullptr;  // null before the thread's first and after its last instruction
  Fiber fibers[kFibersPerThread];
  AsyncCopies copies;
  AsyncProducts products;
  void* landing = nullptr;  // see memory/sparse.h
};

// A lane that has arrived at a collective.
struct Arrival {
  const char* name;
  Resolve resolve;
  unsigned mask;
  Loc loc;
  bool aligned;  // all lanes must be at the same instruction, not only the same kind
};

struct Warp {
  unsigned index = 0;
  unsigned live = 0, ready = 0, waiting = 0, at_barrier = 0, polling = 0;  // bit masks of lanes
  Arrival arrivals[kLanes];
  void* payloads[kLanes];
};

}  // namespace emu
