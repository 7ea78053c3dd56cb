// The bound for hostile input: a process that exceeds it is killed and reported.
#include "tests/bounded.h"

#include <doctest/doctest.h>

#include <vector>

using test::bounded_error;

TEST_CASE("bounded: how a process ends") {
  CHECK(bounded_error([] {}) == "no error");
  CHECK(bounded_error([] { ricci::fail("x: {}", {3}); }) == "x: 3");
  CHECK(bounded_error([] { throw std::runtime_error("y"); }) == "an exception that is no ricci::Error: y");
  CHECK(bounded_error([] { ::_exit(3); }) == "exit code 3");
  CHECK(bounded_error([] { ::raise(SIGKILL); }) == "signal 9");
}

TEST_CASE("bounded: too much processor time, waiting or memory") {
  const std::string late = ricci::format_message("more than {} s", {0.02 * test::kSanitizerShare});
  CHECK(bounded_error(
            [] {
              for (volatile unsigned i = 0;;) {
                i = i + 1;
              }
            },
            {.seconds = 0.02}) == late);
  CHECK(bounded_error([] { ::pause(); }, {.seconds = 0.02}) == late);
  CHECK(bounded_error([] { ::kill(::getpid(), SIGSTOP); }, {.seconds = 0.02}) == late);
  const std::string large = ricci::format_message("more than {} MiB", {16 * test::kSanitizerShare});
  const auto grow = [] {
    const std::vector<char> all((64 << 20) * test::kSanitizerShare, '\1');
    [[maybe_unused]] const char* volatile used = all.data();  // else clang leaves the memory out
    ::pause();
  };
  CHECK(bounded_error(grow, {.seconds = 60, .mebibytes = 16}) == large);
  CHECK(bounded_error([] { std::vector<char>(1 << 20, '\1'); }, {.mebibytes = 16}) == "no error");
}
