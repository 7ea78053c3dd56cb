// Ctrl-C, the polite request to end and the loss of the terminal, as a flag: training finishes its step, saves, and leaves.
#pragma once
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace ricci::apps {

// While alive, the first SIGINT, SIGTERM or SIGHUP sets the flag, and a second one ends the program as usual. SIGHUP stays
// ignored where it was, as under nohup. Ctrl-C on a terminal is answered, as a step or an evaluation may take its time.
class Interrupt {
 public:
  Interrupt() {
    flag() = 0;
    struct sigaction action = {};
    action.sa_handler = answer;
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    ::sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], &action, &old_[i]);
      if (kSignals[i] == SIGHUP && old_[i].sa_handler == SIG_IGN) ::sigaction(SIGHUP, &old_[i], nullptr);
    }
  }
  ~Interrupt() {
    for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &old_[i], nullptr);
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
  static volatile std::sig_atomic_t& flag() {
    static volatile std::sig_atomic_t value = 0;
    return value;
  }
  std::array<struct sigaction, kSignals.size()> old_ = {};
};

}  // namespace ricci::apps
