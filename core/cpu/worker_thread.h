// Threads in addition to the first one of a program. They get no signals: otherwise a handler could run on one of them, and would interrupt
// no call of the first thread, such as a write to a terminal that has stopped.
#pragma once
#include <csignal>
#include <thread>

namespace ricci {

// While alive, this thread, and for their whole life the threads that it starts meanwhile, get only signals that they cause themselves,
// such as SIGSEGV.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t signals;
    ::sigfillset(&signals);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPIPE, SIGXFSZ}) ::sigdelset(&signals, own);
    ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  ~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

// Error (a std::exception): the system has no thread left for this process.
template <class Body> std::thread start_worker(const Body& body) {
  const SignalsHeld inherited;
  return std::thread(body);
}

}  // namespace ricci
