// Output to pipes and terminals whose readers have stopped.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "apps/terminal/signals.h"
#include "apps/terminal/streams.h"
#include "tests/bounded.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

// Tells more than the reader takes, and how long that takes from the request to end on.
void tell_until_asked(int descriptor) {
  const Interrupt interrupt;
  std::signal(SIGPIPE, SIG_IGN);
  std::thread([] {
    ::usleep(100'000);
    ::kill(::getpid(), SIGTERM);
  }).detach();
  const double started = test::seconds_now();
  const std::string text(1'000'000, 'x');
  tell(descriptor, text);
  tell(descriptor, text);
  const double took = test::seconds_now() - started;
  if (!Interrupt::requested()) fail("it did not wait for its reader");
  if (took > 1.5) fail("it took {} s", {took});
}

}  // namespace

TEST_CASE("output: what is told is written as a whole") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  std::string text;
  for (int i = 0; i < 30'000; ++i) text += std::to_string(i);
  std::string read(text.size(), '\0');
  std::thread reader([&] {
    for (size_t at = 0; at < read.size();)
      at += static_cast<size_t>(std::max<ssize_t>(::read(ends[0], &read[at], std::min<size_t>(read.size() - at, 999)), 0));
  });
  tell(ends[1], text);
  reader.join();
  CHECK(read == text);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("output: a pipe that nobody reads is not waited for after a request to end") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  CHECK(test::bounded_error([&] { tell_until_asked(ends[1]); }, {.seconds = 3}) == "no error");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("output: nor is a terminal that has stopped") {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  REQUIRE((::grantpt(terminal) == 0 && ::unlockpt(terminal) == 0));
  const int user = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
  REQUIRE(user >= 0);
  SUBCASE("its reader does not read") {}
  SUBCASE("it was told to stop, as by Ctrl-S") { REQUIRE(::tcflow(user, TCOOFF) == 0); }
  CHECK(test::bounded_error([&] { tell_until_asked(user); }, {.seconds = 3}) == "no error");
  ::close(user);
  ::close(terminal);
}

TEST_CASE("output: what cannot be written is dropped") {
  CHECK(test::bounded_error([] { tell(-1, "text"); }) == "no error");
  CHECK(test::bounded_error([] { tell(::open("/dev/full", O_WRONLY), "text"); }) == "no error");
  CHECK(test::bounded_error([] {
    int ends[2];
    std::signal(SIGPIPE, SIG_IGN);
    if (::pipe(ends) != 0) fail("no pipe");
    ::close(ends[0]);
    tell(ends[1], std::string(100'000, 'x'));
  }) == "no error");
}
