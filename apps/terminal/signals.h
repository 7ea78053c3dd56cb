// Signals to a training. Ctrl-C, SIGTERM, SIGUSR1 and the loss of the terminal are a flag: training finishes its step, saves, and leaves.
#pragma once
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>

#include "core/cpu/ending_signals.h"

namespace ricci::apps {

// While alive, the first SIGINT, SIGTERM, SIGHUP or SIGUSR1 sets the flag, and the next one of the first three ends the program at
// once; SIGUSR1 only asks, as launchers may send it twice. SIGHUP stays ignored where it was ignored before, as under nohup. Ctrl-C on a
// terminal is answered, because a step or an evaluation may take a while. A call that waits in the system, such as a write to a terminal
// that has stopped, ends with EINTR. Made by the program's first thread: the system gives signals to it alone.
class Interrupt {
 public:
  Interrupt() {
    flag() = 0;
    struct sigaction action = {};
    action.sa_handler = answer;
    // While one signal is answered the others wait, so that the next one meets the default action, which ends the program.
    ::sigemptyset(&action.sa_mask);
    for (const int signal : kEndingSignals) ::sigaddset(&action.sa_mask, signal);
    for (size_t i = 0; i < kEndingSignals.size(); ++i) {
      ::sigaction(kEndingSignals[i], &action, &old_[i]);
      if (kEndingSignals[i] == SIGHUP && old_[i].sa_handler == SIG_IGN) ::sigaction(SIGHUP, &old_[i], nullptr);
    }
  }
  ~Interrupt() {
    for (size_t i = 0; i < kEndingSignals.size(); ++i) ::sigaction(kEndingSignals[i], &old_[i], nullptr);
  }
  Interrupt(const Interrupt&) = delete;

  static bool requested() { return flag() != 0; }

 private:
  static void answer(int signal) {
    flag() = 1;
    for (const int each : kEndingSignals) {
      struct sigaction now = {};
      if (each != SIGUSR1 && ::sigaction(each, nullptr, &now) == 0 && now.sa_handler == answer) std::signal(each, SIG_DFL);
    }
    static constexpr char kAnswer[] = "\nsaving after this step; Ctrl-C again ends at once\n";
    const int before = errno;
    pollfd terminal{STDERR_FILENO, POLLOUT, 0};  // one that has stopped is not waited for
    if (signal == SIGINT && ::isatty(STDERR_FILENO) && ::poll(&terminal, 1, 0) == 1 && (terminal.revents & POLLOUT)) [[maybe_unused]]
      const ssize_t written = ::write(STDERR_FILENO, kAnswer, sizeof kAnswer - 1);
    errno = before;
  }

  static volatile std::sig_atomic_t& flag() {
    static volatile std::sig_atomic_t value = 0;
    return value;
  }
  std::array<struct sigaction, kEndingSignals.size()> old_ = {};
};

}  // namespace ricci::apps
