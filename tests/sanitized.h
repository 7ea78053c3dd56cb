// Whether this build runs under a sanitizer. The emulator, whose every thread is a fiber, takes ten times as long there, and a sanitizer
// shows a race or an overrun whenever a kernel runs at all: under one a kernel runs once or twice where other builds run it hundreds of
// times, with other numbers.
#pragma once

namespace test {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace test
