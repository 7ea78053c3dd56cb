// A test that cannot run here, for lack of a GPU, a corpus or a program: it prints the reason, and is counted.
//   TEST_CASE("split: tinyshakespeare as nanoGPT cuts it" * doctest::test_suite("needs tinyshakespeare"))
// Each such suite is a separate ctest entry (tests/CMakeLists.txt). The test program ends with kAllSkipped (skipped for ctest) if every
// test that it was asked to run called skip() and none failed.
#pragma once
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

namespace test {

inline constexpr int kAllSkipped = 77;
inline int skipped = 0;

// True in the long test run (tests/run.sh --all): a test can try every shape instead of some.
inline bool everything() { return std::getenv("RICCI_TEST_ALL") != nullptr; }

// Once per test case; the test then returns.
inline void skip(const std::string& why) {
  ++skipped;
  MESSAGE("skipped: ", why);
}

}  // namespace test
