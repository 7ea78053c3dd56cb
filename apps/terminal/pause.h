// Ctrl-Z: a program that is stopped and goes on later has not worked in between.
#pragma once
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>

#include "core/cpu/clock.h"

namespace ricci::apps {

// While alive, SIGTSTP still stops the program, and the time until it goes on is counted. SIGTSTP stays ignored where it was
// ignored before. The signal handler runs on the stack that Interrupt has given to the first thread, so an Interrupt must be alive.
class Pause {
 public:
  Pause() {
    struct sigaction action = {};
    action.sa_handler = stop;
    action.sa_flags = SA_ONSTACK | SA_RESTART;
    ::sigaction(SIGTSTP, &action, &old_);
    if (old_.sa_handler == SIG_IGN) ::sigaction(SIGTSTP, &old_, nullptr);
  }
  ~Pause() { ::sigaction(SIGTSTP, &old_, nullptr); }
  Pause(const Pause&) = delete;

  // A clock as seconds_now(), that stands still while the program is stopped.
  static double seconds_running() { return seconds_now() - static_cast<double>(paused()) * 1e-9; }

 private:
  static std::atomic<int64_t>& paused() {
    static std::atomic<int64_t> nanoseconds = 0;
    return nanoseconds;
  }
  static int64_t now() {
    timespec time = {};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  }
  // The default action stops the program: it is put back, and the signal sent again, which comes as soon as it is not blocked.
  static void stop(int signal) {
    const int before = errno;
    const int64_t stopped = now();
    struct sigaction action = {}, own = {};
    action.sa_handler = SIG_DFL;
    ::sigaction(signal, &action, &own);
    ::raise(signal);
    sigset_t only = {}, mask = {};
    ::sigemptyset(&only);
    ::sigaddset(&only, signal);
    ::pthread_sigmask(SIG_UNBLOCK, &only, &mask);
    ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    ::sigaction(signal, &own, nullptr);
    paused() += now() - stopped;
    errno = before;
  }

  struct sigaction old_ = {};
};

}  // namespace ricci::apps
