// Where recorded ops take their random numbers from: Philox{seed, stream}, a new stream for every op that draws. The state
// is a few numbers, so that recomputation can go back to it and draw the same again.
#pragma once
#include <cstdint>

#include "core/philox.h"

namespace ricci {

struct RandomState {
  uint64_t seed = 0;
  uint64_t next_stream = 0;
  // Tensors are part number `part` of larger ones that were cut along their outermost index into parts of equal shape: random
  // numbers are those of their elements' places in the whole. A batch and its micro-batches get the same dropout.
  uint64_t part = 0;
  const uint64_t* base = nullptr;  // a number that streams are counted from, in memory of the device that draws; null: from 0
  bool operator==(const RandomState&) const = default;
};

// Of this thread.
RandomState random_state();
void set_random_state(RandomState state);
PhiloxSource take_stream();  // the next stream, which nobody else gets

}  // namespace ricci
