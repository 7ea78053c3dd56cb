// Requests to end (Ctrl-C and other signals), and the standard streams. A run must save before it ends, so a signal handler only records
// the signal.
#pragma once
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <istream>
#include <string>
#include <string_view>

#include "core/cpu/available.h"
#include "core/error.h"
#include "cuda/ranks/ranks.h"

namespace ricci::apps {

// The signals that ask a program to end. mpirun forwards SIGUSR1 to all ranks. After the other signals, it kills the ranks before they can
// save.
inline constexpr std::array kEndingSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

// Records the first of these signals during this object's lifetime: a training run finishes its step, saves and ends. A second
// SIGINT, SIGTERM or SIGHUP ends the program immediately. Launchers can send SIGUSR1 twice, so it never ends the program immediately.
// SIGHUP stays ignored if it was ignored before, as under nohup. A blocked system call, such as a write to a full pipe, returns with EINTR.
class Interrupt {
 public:
  // `answers`: Ctrl-C on a terminal prints a line. ricci compare leaves this to its child.
  explicit Interrupt(bool answers = true) {
    signal_ = 0;
    answers_ = answers;
    struct sigaction action = {};
    action.sa_handler = handle;
    for (const int signal : kEndingSignals) ::sigaddset(&action.sa_mask, signal);  // a further signal waits, then acts as the second signal
    for (size_t i = 0; i < kEndingSignals.size(); ++i) {
      ::sigaction(kEndingSignals[i], nullptr, &old_[i]);
      if (kEndingSignals[i] != SIGHUP || old_[i].sa_handler != SIG_IGN) ::sigaction(kEndingSignals[i], &action, nullptr);
    }
  }
  ~Interrupt() {
    for (size_t i = 0; i < kEndingSignals.size(); ++i) ::sigaction(kEndingSignals[i], &old_[i], nullptr);
  }
  Interrupt(const Interrupt&) = delete;

  static bool requested() { return signal_ != 0; }
  // True if the request is more than a second old. Then a step that still runs is abandoned.
  static bool is_overdue() { return requested() && seconds_now() > requested_at_ + 1; }
  // 130 after Ctrl-C, 143 after SIGTERM, as in shells; also 143 if only a different rank received the signal.
  static int exit_code() { return 128 + (requested() ? signal_.load() : SIGTERM); }

 private:
  static void handle(int signal) {
    const int before = errno;
    static constexpr char kAnswer[] = "\nsaving; Ctrl-C again ends immediately\n";
    if (signal_ && signal != SIGUSR1) {
      std::signal(signal, SIG_DFL);
      ::raise(signal);  // ends the program when this function returns
    } else if (signal == SIGINT && answers_ && ::isatty(STDERR_FILENO)) {
      [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kAnswer, sizeof kAnswer - 1);
    }
    if (signal_ == 0) {
      requested_at_ = seconds_now();  // clock_gettime is allowed in a signal handler
      signal_ = signal;
    }
    errno = before;
  }

  static inline std::atomic<int> signal_ = 0;           // lock-free, for the signal handler
  static inline std::atomic<double> requested_at_ = 0;  // seconds_now()
  static inline volatile std::sig_atomic_t answers_ = 0;
  std::array<struct sigaction, kEndingSignals.size()> old_ = {};
};

// True if a progress bar can be drawn on this descriptor. mpirun gives its processes a terminal even if it writes their output to a file.
inline bool is_terminal(int descriptor) {
  const char* const kind = std::getenv("TERM");
  const Launcher launcher = find_launcher();
  return ::isatty(descriptor) == 1 && kind && std::string_view(kind) != "dumb" && launcher.count == 1 && launcher.name != "mpirun";
}

// Reads and counts a line, without its end (\n or \r\n) and without an initial byte order mark. Returns false at the end of the stream.
inline bool next_line(std::istream& lines, std::string& line, int64_t& number) {
  if (!std::getline(lines, line)) return false;
  if (number++ == 0 && line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);
  if (line.ends_with('\r')) line.pop_back();
  return true;
}
inline bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == line.npos; }

// All bytes of stdin. Error: a read fails.
inline std::string read_stdin() {
  std::string text;
  char block[1 << 16];
  while (const size_t bytes = std::fread(block, 1, sizeof block, stdin)) text.append(block, bytes);
  if (std::ferror(stdin)) fail("cannot read from stdin");
  return text;
}

// Writes to a descriptor, and drops output that cannot be written. After a request to end, all output is dropped once the reader does not
// keep up, so unread output neither ends nor hangs a run. The wait is short: a signal just before poll() does not interrupt poll(). A pipe
// that is ready accepts PIPE_BUF bytes without blocking.
inline void write_output(int descriptor, std::string_view text) {
  static bool is_read = true;
  while (is_read && descriptor >= 0 && !text.empty()) {
    constexpr int kWait = 100;  // milliseconds
    pollfd reader{.fd = descriptor, .events = POLLOUT, .revents = 0};
    if (::poll(&reader, 1, kWait) <= 0) {
      is_read = !Interrupt::requested();
      continue;
    }
    const ssize_t written = ::write(descriptor, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace ricci::apps
