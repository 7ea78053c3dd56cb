// Signals that this process sends to itself, and to a child for the second one.
#include "apps/terminal/interrupt.h"

#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

using ricci::apps::Interrupt;

TEST_CASE("interrupt: the first signal sets the flag, a new watch starts without it") {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Interrupt interrupt;
    CHECK_FALSE(interrupt.requested());
    std::raise(signal);
    CHECK(interrupt.requested());
  }
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
