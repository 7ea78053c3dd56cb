// Signals that this process sends to itself, and to a child for the second one. Output to pipes and terminals without a reader.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <initializer_list>
#include <thread>

#include "apps/terminal/streams.h"
#include "tests/bounded.h"
#include "tests/data/files.h"

using namespace ricci::apps;
using namespace ricci;
using namespace test_data;

namespace {

// Waits until a thread of this process sleeps in the system.
void wait_until_asleep(pid_t thread) {
  for (std::string status; status.find(") S ") == status.npos; std::this_thread::yield())
    status = read_file("/proc/self/task/" + std::to_string(thread) + "/stat");
}

// Writes more than the reader reads, and gets a request to end while it waits for the reader.
void write_until_asked(int descriptor) {
  const Interrupt interrupt;
  std::signal(SIGPIPE, SIG_IGN);
  std::thread asking([writer = ::gettid(), descriptor] {
    for (pollfd ready{descriptor, POLLOUT, 0}; ::poll(&ready, 1, 0) != 0;) std::this_thread::yield();  // until it is full
    wait_until_asleep(writer);
    ::kill(::getpid(), SIGTERM);
  });
  const std::string text(1'000'000, 'x');
  write_output(descriptor, text);
  asking.join();
  write_output(descriptor, text);
  if (!Interrupt::requested()) fail("it did not wait for its reader");
}

}  // namespace

TEST_CASE("interrupt: the first signal sets the flag, a new watch starts without it") {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    const Interrupt interrupt;
    CHECK_FALSE(interrupt.requested());
    std::raise(signal);
    if (signal == SIGUSR1) std::raise(signal);  // only asks, even if repeated
    CHECK(interrupt.requested());
  }
}

TEST_CASE("interrupt: a request is overdue after a second, however long a step has run before") {
  const Interrupt interrupt;
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  std::raise(SIGTERM);
  CHECK_FALSE(interrupt.is_overdue());
  std::raise(SIGUSR1);  // a repeated request has no effect
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  CHECK(interrupt.is_overdue());
}

TEST_CASE("interrupt: the previous handler comes back") {
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

#if !defined(__SANITIZE_THREAD__)  // it queues signals, and drops them if their handler is gone
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
  std::atomic<bool> ended = false;
  const pthread_t reader = ::pthread_self();
  std::thread sender([&] {  // the first signals can come before the call
    while (!ended && ::pthread_kill(reader, SIGUSR1) == 0) std::this_thread::yield();
  });
  char byte;
  const ssize_t got = ::read(ends[0], &byte, 1);
  const int error = errno;
  ended = true;
  sender.join();
  CHECK(got < 0);
  CHECK(error == EINTR);
  CHECK(interrupt.requested());
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

TEST_CASE("output: a long text is written completely") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  std::string text;
  for (int i = 0; i < 30'000; ++i) text += std::to_string(i);
  std::string read(text.size(), '\0');
  std::thread reader([&] {
    for (size_t at = 0; at < read.size();)
      at += static_cast<size_t>(std::max<ssize_t>(::read(ends[0], &read[at], std::min<size_t>(read.size() - at, 999)), 0));
  });
  write_output(ends[1], text);
  reader.join();
  CHECK(read == text);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("output: after a request to end, neither a full pipe nor a stopped terminal is waited for") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  REQUIRE((::grantpt(terminal) == 0 && ::unlockpt(terminal) == 0));
  const int user = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
  REQUIRE(user >= 0);
  REQUIRE(::tcflow(user, TCOOFF) == 0);  // as by Ctrl-S
  // Both together: each waits for a second.
  const auto outcome_of = [](int descriptor) { return test::bounded_error([=] { write_until_asked(descriptor); }); };
  std::future<std::string> of_pipe = std::async(std::launch::async, outcome_of, ends[1]);
  CHECK(outcome_of(user) == "no error");
  CHECK(of_pipe.get() == "no error");
  for (const int descriptor : {ends[0], ends[1], user, terminal}) ::close(descriptor);
}

TEST_CASE("output: a request to end before a write counts in it") {
  CHECK(test::bounded_error([] {
    int ends[2];
    if (::pipe(ends) != 0) fail("no pipe");
    const Interrupt interrupt;
    std::raise(SIGTERM);
    write_output(ends[1], std::string(1'000'000, 'x'));  // no reader, and no other signal
  }) == "no error");
}

TEST_CASE("output: text that cannot be written is dropped") {
  CHECK(test::bounded_error([] { write_output(-1, "text"); }) == "no error");
  CHECK(test::bounded_error([] { write_output(::open("/dev/full", O_WRONLY), "text"); }) == "no error");
  CHECK(test::bounded_error([] {
    int ends[2];
    std::signal(SIGPIPE, SIG_IGN);
    if (::pipe(ends) != 0) fail("no pipe");
    ::close(ends[0]);
    write_output(ends[1], std::string(100'000, 'x'));
  }) == "no error");
}
