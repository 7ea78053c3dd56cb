// Ctrl-C, the polite request to end and the loss of the terminal, as a flag: training finishes its step, saves, and leaves.
#pragma once
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <memory>

namespace ricci::apps {

// While alive, the first SIGINT, SIGTERM or SIGHUP sets the flag, and a second one ends the program as usual. SIGHUP stays
// ignored where it was, as under nohup. Ctrl-C on a terminal is answered, as a step or an evaluation may take its time.
// Made by the program's first thread, to which the system gives signals.
class Interrupt {
 public:
  Interrupt() {
    flag() = 0;
    const stack_t stack{.ss_sp = stack_.get(), .ss_flags = 0, .ss_size = kStackBytes};
    ::sigaltstack(&stack, &old_stack_);
    struct sigaction action = {};
    action.sa_handler = answer;
    action.sa_flags = SA_RESTART | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
    ::sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], &action, &old_[i]);
      if (kSignals[i] == SIGHUP && old_[i].sa_handler == SIG_IGN) ::sigaction(SIGHUP, &old_[i], nullptr);
    }
  }
  ~Interrupt() {
    for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &old_[i], nullptr);
    ::sigaltstack(&old_stack_, nullptr);
  }
  Interrupt(const Interrupt&) = delete;

  bool requested() const { return flag() != 0; }

 private:
  static void answer(int signal) {
    flag() = 1;
    static constexpr char kAnswer[] = "\nsaving after this step; Ctrl-C again ends at once\n";
    const int before = errno;
    if (signal == SIGINT && ::isatty(STDERR_FILENO)) [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kAnswer, sizeof kAnswer - 1);
    errno = before;
  }
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  // Of its own: oneDNN's products use the stack pointer for other things, and what the system puts below it at a signal
  // would go into their data or into the heap.
  static constexpr size_t kStackBytes = 64 << 10;

  static volatile std::sig_atomic_t& flag() {
    static volatile std::sig_atomic_t value = 0;
    return value;
  }
  const std::unique_ptr<char[]> stack_{new char[kStackBytes]};
  stack_t old_stack_ = {};
  std::array<struct sigaction, kSignals.size()> old_ = {};
};

}  // namespace ricci::apps
