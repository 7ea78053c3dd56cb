// kThreadSanitizer is true in builds with ThreadSanitizer, kSanitized with it or AddressSanitizer. Emulated kernels are slow there, slowest
// under ThreadSanitizer. A sanitizer reports a race or an overrun the first time that a kernel runs, so tests run each kernel once or twice
// there. Under AddressSanitizer they run every shape and view of attention: an overrun depends on these.
#pragma once

namespace test {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = kThreadSanitizer;
#endif

}  // namespace test
