#include "core/cpu/worker_thread.h"

#include <csignal>

namespace ricci {
namespace {

class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t ending;
    ::sigemptyset(&ending);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGTSTP}) ::sigaddset(&ending, signal);
    ::pthread_sigmask(SIG_BLOCK, &ending, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

std::thread start_worker(const std::function<void()>& body) {
  const BlockedSignals blocked;  // a new thread blocks what the one that makes it blocks
  return std::thread(body);
}

}  // namespace ricci
