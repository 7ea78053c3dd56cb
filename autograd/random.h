// Where recorded ops take their random numbers from: Philox{seed, stream}, a new stream for every op that draws. The state
// is a pair of numbers, so that recomputation can go back to it and draw the same again.
#pragma once
#include <cstdint>

namespace ricci {

struct RandomState {
  uint64_t seed = 0;
  uint64_t next_stream = 0;
  bool operator==(const RandomState&) const = default;
};

// Of this thread.
RandomState random_state();
void set_random_state(RandomState state);
uint64_t take_stream();  // the next stream, which nobody else gets

}  // namespace ricci
