// Signals to a training. Ctrl-C, SIGTERM, SIGUSR1 and the loss of the terminal are a flag: training finishes its step, saves, and leaves.
#pragma once
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <memory>

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
    const stack_t stack{.ss_sp = stack_.get(), .ss_flags = 0, .ss_size = kStackBytes};
    ::sigaltstack(&stack, &old_stack_);
    struct sigaction action = {};
    action.sa_handler = answer;
    action.sa_flags = SA_ONSTACK;
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
    ::sigaltstack(&old_stack_, nullptr);
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
  // Signals have a stack of their own: oneDNN's products use the stack pointer for other things, and what the system puts below it at a
  // signal would go into their data or into the heap.
  static constexpr size_t kStackBytes = 64 << 10;

  static volatile std::sig_atomic_t& flag() {
    static volatile std::sig_atomic_t value = 0;
    return value;
  }
  const std::unique_ptr<char[]> stack_{new char[kStackBytes]};
  stack_t old_stack_ = {};
  std::array<struct sigaction, kEndingSignals.size()> old_ = {};
};

}  // namespace ricci::apps
