// Whether this build runs under ThreadSanitizer. It takes long over the emulator, whose every thread is a fiber, and shows a race
// whenever a kernel runs at all: there a kernel runs once or twice where other builds run it hundreds of times, with other numbers.
#pragma once

namespace test {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

}  // namespace test
