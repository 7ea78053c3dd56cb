// The source of the random numbers of recorded ops: Philox{seed, stream}, a new stream for every op that draws. The state
// is a few numbers, so that recomputation can go back to it and draw the same again.
#pragma once
#include <cstdint>

#include "core/philox.h"

namespace ricci {

struct RandomState {
  uint64_t seed = 0;
  uint64_t next_stream = 0;
  // The number of the micro-batch in its batch. Random numbers follow an element's place in the tensor of the whole batch, in which the
  // micro-batches follow each other with equal shapes: so both get the same dropout.
  uint64_t micro_batch = 0;
  const uint64_t* base = nullptr;  // the first number of streams, in memory of the device that draws; 0 if it is null
  bool operator==(const RandomState&) const = default;
};

inline constinit thread_local RandomState random_state_of_thread{};

inline RandomState random_state() { return random_state_of_thread; }
inline void set_random_state(RandomState state) { random_state_of_thread = state; }
// The next stream, which no other call gets.
inline PhiloxSource take_stream() {
  RandomState& state = random_state_of_thread;
  return {state.seed, state.next_stream++, state.base};
}

}  // namespace ricci
