// Signals that this process sends to itself, and to a child for the second one.
#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "apps/terminal/signals.h"

using ricci::apps::Interrupt;

TEST_CASE("interrupt: the first signal sets the flag, a new watch starts without it") {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    const Interrupt interrupt;
    CHECK_FALSE(interrupt.requested());
    std::raise(signal);
    CHECK(interrupt.requested());
  }
}

TEST_CASE("interrupt: SIGUSR1 asks, however often it comes") {
  const Interrupt interrupt;
  std::raise(SIGUSR1);
  std::raise(SIGUSR1);
  CHECK(interrupt.requested());
}

#if defined(__x86_64__)
// Sends a signal to this thread while its stack pointer is `top`, as in a library's product that uses the register for its data.
static void raise_with_stack_pointer(char* top, int signal) {
  long result = SYS_tgkill;
  asm volatile("mov %%rsp, %%rbx\n\tmov %[top], %%rsp\n\tsyscall\n\tmov %%rbx, %%rsp"
               : "+a"(result)
               : "D"(static_cast<long>(::getpid())), "S"(::syscall(SYS_gettid)), "d"(static_cast<long>(signal)), [top] "r"(top)
               : "rbx", "rcx", "r11", "memory");
  CHECK(result == 0);
}

TEST_CASE("interrupt: nothing is written where the stack pointer points") {
  std::vector<char> data(1 << 16, 'x');
  const Interrupt interrupt;
  raise_with_stack_pointer(data.data() + data.size() / 2, SIGINT);
  CHECK(interrupt.requested());
  CHECK(std::count(data.begin(), data.end(), 'x') == 1 << 16);
}
#endif

TEST_CASE("interrupt: what stood before comes back") {
  static volatile std::sig_atomic_t outer = 0;
  const auto old = std::signal(SIGINT, [](int) { outer = 1; });
  { const Interrupt interrupt; }
  std::raise(SIGINT);
  CHECK(outer == 1);
  std::signal(SIGINT, old);
}

TEST_CASE("interrupt: a second signal ends the program, whichever was first") {
  for (const int first : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    for (const int second : {SIGINT, SIGTERM, SIGHUP}) {
      CAPTURE(first);
      CAPTURE(second);
      const pid_t child = ::fork();
      REQUIRE(child >= 0);
      if (child == 0) {
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) std::signal(signal, SIG_DFL);
        const Interrupt interrupt;
        std::raise(first);
        if (interrupt.requested()) std::raise(second);
        ::_exit(0);
      }
      int status = 0;
      REQUIRE(::waitpid(child, &status, 0) == child);
      CHECK(WIFSIGNALED(status));
      CHECK(WTERMSIG(status) == second);
    }
  }
}

#if !defined(__SANITIZE_THREAD__)  // which queues signals, and forgets those whose handler has gone by then
TEST_CASE("interrupt: two signals that arrive together are two") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const Interrupt interrupt;
    sigset_t both, before;
    ::sigemptyset(&both);
    ::sigaddset(&both, SIGINT);
    ::sigaddset(&both, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &both, &before);
    std::raise(SIGINT);
    std::raise(SIGTERM);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
}
#endif

TEST_CASE("interrupt: a call that waits in the system ends") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const Interrupt interrupt;
  const timer_t timer = [] {
    timer_t made{};
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGTERM;
    ::timer_create(CLOCK_MONOTONIC, &event, &made);
    const itimerspec soon{{}, {0, 50'000'000}};
    ::timer_settime(made, 0, &soon, nullptr);
    return made;
  }();
  char byte;
  CHECK(::read(ends[0], &byte, 1) < 0);
  CHECK(errno == EINTR);
  CHECK(interrupt.requested());
  ::timer_delete(timer);
  ::close(ends[0]);
  ::close(ends[1]);
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
