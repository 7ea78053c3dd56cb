// Signals that this process sends to itself, and to a child for the second one.
#include "apps/shared/interrupt.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

using ricci::apps::Interrupt;

TEST_CASE("interrupt: the first signal sets the flag, a new watch starts without it") {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Interrupt interrupt;
    CHECK_FALSE(interrupt.requested());
    std::raise(signal);
    CHECK(interrupt.requested());
  }
}

TEST_CASE("interrupt: what stood before comes back") {
  static volatile std::sig_atomic_t outer = 0;
  const auto old = std::signal(SIGINT, [](int) { outer = 1; });
  { const Interrupt interrupt; }
  std::raise(SIGINT);
  CHECK(outer == 1);
  std::signal(SIGINT, old);
}

TEST_CASE("interrupt: the second signal ends the program") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const Interrupt interrupt;
    std::raise(SIGINT);
    std::raise(SIGINT);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGINT);
}

TEST_CASE("interrupt: a terminal that is gone is a request to end, but not under nohup") {
  const auto old = std::signal(SIGHUP, SIG_DFL);
  {
    const Interrupt interrupt;
    std::raise(SIGHUP);
    CHECK(interrupt.requested());
  }
  std::signal(SIGHUP, SIG_IGN);
  {
    const Interrupt interrupt;
    std::raise(SIGHUP);
    CHECK_FALSE(interrupt.requested());
  }
  const bool ignored_again = std::signal(SIGHUP, old) == SIG_IGN;
  CHECK(ignored_again);
}
