// Ctrl-C and the polite request to end, as a flag: training finishes its step, saves, and leaves.
#pragma once
#include <csignal>

namespace ricci::apps {

// While alive, the first SIGINT or SIGTERM sets the flag, and a second one ends the program as usual.
class Interrupt {
 public:
  Interrupt() {
    flag() = 0;
    struct sigaction action = {};
    action.sa_handler = [](int) { flag() = 1; };
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGINT, &action, &old_interrupt_);
    ::sigaction(SIGTERM, &action, &old_terminate_);
  }
  ~Interrupt() {
    ::sigaction(SIGINT, &old_interrupt_, nullptr);
    ::sigaction(SIGTERM, &old_terminate_, nullptr);
  }
  Interrupt(const Interrupt&) = delete;

  bool requested() const { return flag() != 0; }

 private:
  static volatile std::sig_atomic_t& flag() {
    static volatile std::sig_atomic_t value = 0;
    return value;
  }
  struct sigaction old_interrupt_ = {}, old_terminate_ = {};
};

}  // namespace ricci::apps
