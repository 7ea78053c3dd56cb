// The frequencies of rotary positions (ops/rotary/rotary.h) one by one, for files that hold them.
#pragma once
#include "ops/rotary/rotary.h"

namespace ricci {

// w_i of r columns, in radians a position, after the scaling.
double rotary_frequency(int64_t i, int64_t r, const RotaryFrequencies& frequencies);

}  // namespace ricci
