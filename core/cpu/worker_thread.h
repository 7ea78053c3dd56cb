// Threads beside the first one of a program, and the signals that threads get.
#pragma once
#include <csignal>
#include <functional>
#include <thread>

namespace ricci {

// While alive, this thread gets no signal, but those that it brings upon itself, as SIGSEGV: others wait until its end, or go to another
// thread. oneDNN's products need this: they use the stack pointer for other things, and the system would write below it what a handler
// returns to, into their data or into the heap. One inside another costs nothing.
class SignalsHeld {
 public:
  SignalsHeld();
  ~SignalsHeld();
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  bool outermost_;
  sigset_t before_;
};

// A worker thread. It gets no signals all its life, so that the program's own threads handle them. Error (a std::exception): the system
// has no thread left for this process.
std::thread start_worker(const std::function<void()>& body);

}  // namespace ricci
