// Time that passes, for measuring how long something took.
#pragma once
#include <chrono>

namespace ricci {

// Since some moment in the past, the same for the whole program.
inline double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace ricci
