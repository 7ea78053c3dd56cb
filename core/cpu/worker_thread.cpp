#include "core/cpu/worker_thread.h"

#include <utility>

namespace ricci {
namespace {

thread_local bool held = false;

// All but those that a thread brings upon itself.
sigset_t signals_from_others() {
  sigset_t signals;
  ::sigfillset(&signals);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPIPE, SIGXFSZ}) ::sigdelset(&signals, own);
  return signals;
}

}  // namespace

SignalsHeld::SignalsHeld() : outermost_(!std::exchange(held, true)) {
  static const sigset_t signals = signals_from_others();
  if (outermost_) ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
}

SignalsHeld::~SignalsHeld() {
  if (!outermost_) return;
  held = false;
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::thread start_worker(const std::function<void()>& body) {
  const SignalsHeld inherited;  // a new thread blocks what the one that makes it blocks
  return std::thread([body] {
    held = true;
    body();
  });
}

}  // namespace ricci
