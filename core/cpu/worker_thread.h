// Threads beside the first one of a program, and the signals that threads get.
#pragma once
#include <csignal>
#include <thread>
#include <utility>

namespace ricci {

// While alive, this thread gets only the signals that it causes itself, as SIGSEGV: others wait until its end, or go to another thread.
// oneDNN's products need this: they use the stack pointer for other things, and the system would write below it what a handler returns to,
// into their data or into the heap. One inside another costs nothing.
class SignalsHeld {
 public:
  SignalsHeld() : outermost_(!std::exchange(held_, true)) {
    static const sigset_t signals = signals_from_others();
    if (outermost_) ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  ~SignalsHeld() {
    if (!outermost_) return;
    held_ = false;
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

  // For a thread that has blocked them from its start.
  static void hold_for_ever() { held_ = true; }

 private:
  static sigset_t signals_from_others() {
    sigset_t signals;
    ::sigfillset(&signals);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPIPE, SIGXFSZ}) ::sigdelset(&signals, own);
    return signals;
  }
  static inline thread_local bool held_ = false;
  bool outermost_;
  sigset_t before_;
};

// A worker thread. It gets no signals all its life, so that the program's own threads handle them. Error (a std::exception): the system
// has no thread left for this process.
template <class Body> std::thread start_worker(const Body& body) {
  const SignalsHeld inherited;  // a new thread blocks what the one that makes it blocks
  return std::thread([body] {
    SignalsHeld::hold_for_ever();
    body();
  });
}

}  // namespace ricci
