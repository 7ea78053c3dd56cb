// Ctrl-C, the polite request to end and the loss of the terminal, as a flag: training finishes its step, saves, and leaves.
#pragma once
#include <array>
#include <csignal>

namespace ricci::apps {

// While alive, the first SIGINT, SIGTERM or SIGHUP sets the flag, and a second one ends the program as usual. SIGHUP stays
// ignored where it was, as under nohup.
class Interrupt {
 public:
  Interrupt() {
    flag() = 0;
    struct sigaction action = {};
    action.sa_handler = [](int) { flag() = 1; };
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
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  static volatile std::sig_atomic_t& flag() {
    static volatile std::sig_atomic_t value = 0;
    return value;
  }
  std::array<struct sigaction, kSignals.size()> old_ = {};
};

}  // namespace ricci::apps
