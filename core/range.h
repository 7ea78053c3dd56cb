// Integers from lo to hi, hi not among them; in run files "lo:hi".
#pragma once
#include <cstdint>

namespace ricci {

struct Range {
  int64_t lo = 0, hi = 0;
  bool operator==(const Range&) const = default;
};

}  // namespace ricci
