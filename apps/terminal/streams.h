// Signals that ask a program to end, and its standard streams: what has a terminal, stdin, and output that may stay unread.
#pragma once
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <istream>
#include <string>
#include <string_view>

#include "core/error.h"
#include "cuda/ranks/launcher.h"

namespace ricci::apps {

// The signals that ask a program to end. mpirun passes SIGUSR1 on to all ranks and waits for them; after the others it kills them a second
// later.
inline constexpr std::array kEndingSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

// While alive, the first SIGINT, SIGTERM, SIGHUP or SIGUSR1 sets the flag: a training finishes its step, saves, and leaves. The next one of
// the first three ends the program at once; SIGUSR1 only asks, as launchers may send it twice. SIGHUP stays ignored if it was ignored
// before, as under nohup. A call that waits in the system, such as a write to a full pipe, ends with EINTR.
class Interrupt {
 public:
  // `answers`: Ctrl-C on a terminal gets a line, because a step may take long. A program leaves it to its child, which has had Ctrl-C too.
  explicit Interrupt(bool answers = true) {
    flag() = 0;
    has_answer() = answers;
    struct sigaction action = {};
    action.sa_handler = answer;
    for (const int signal : kEndingSignals) ::sigaddset(&action.sa_mask, signal);  // one that comes meanwhile waits, and is the second one
    for (size_t i = 0; i < kEndingSignals.size(); ++i) {
      ::sigaction(kEndingSignals[i], nullptr, &old_[i]);
      if (kEndingSignals[i] != SIGHUP || old_[i].sa_handler != SIG_IGN) ::sigaction(kEndingSignals[i], &action, nullptr);
    }
  }
  ~Interrupt() {
    for (size_t i = 0; i < kEndingSignals.size(); ++i) ::sigaction(kEndingSignals[i], &old_[i], nullptr);
  }
  Interrupt(const Interrupt&) = delete;

  static bool requested() { return flag() != 0; }

 private:
  static void answer(int signal) {
    const int before = errno;
    static constexpr char kAnswer[] = "\nsaving after this step; Ctrl-C again ends at once\n";
    if (flag() && signal != SIGUSR1) {
      std::signal(signal, SIG_DFL);
      ::raise(signal);  // ends the program when this function returns
    } else if (signal == SIGINT && has_answer() && ::isatty(STDERR_FILENO)) {
      [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kAnswer, sizeof kAnswer - 1);
    }
    flag() = 1;
    errno = before;
  }

  static volatile std::sig_atomic_t& flag() {
    static volatile std::sig_atomic_t value = 0;
    return value;
  }
  static volatile std::sig_atomic_t& has_answer() {
    static volatile std::sig_atomic_t value = 0;
    return value;
  }
  std::array<struct sigaction, kEndingSignals.size()> old_ = {};
};

// A terminal that understands control sequences; and one on which colours are wanted (no-color.org). mpirun gives its processes a terminal
// also if it writes their output to a file.
inline bool is_terminal(int descriptor) {
  const char* const kind = std::getenv("TERM");
  const Launcher launcher = find_launcher();
  return ::isatty(descriptor) == 1 && kind && std::string_view(kind) != "dumb" && launcher.count == 1 && launcher.name != "mpirun";
}
inline bool has_colours(int descriptor) {
  const char* const unwanted = std::getenv("NO_COLOR");
  return is_terminal(descriptor) && !(unwanted && *unwanted);
}

// The next line and its number. The line has neither its end, \n or \r\n, nor the mark that some programs put at the start of a file.
// False at the end.
inline bool next_line(std::istream& lines, std::string& line, int64_t& number) {
  if (!std::getline(lines, line)) return false;
  if (number++ == 0 && line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);
  if (line.ends_with('\r')) line.pop_back();
  return true;
}
inline bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == line.npos; }

// All of stdin, as it is. Error: it cannot be read.
inline std::string read_stdin() {
  std::string text;
  char block[1 << 16];
  while (const size_t bytes = std::fread(block, 1, sizeof block, stdin)) text.append(block, bytes);
  if (std::ferror(stdin)) fail("cannot read from stdin");
  return text;
}

// Writes to an open file. Output that cannot be written is dropped, and so is all output once a request to end has met a reader that does
// not read: no run ends or hangs because its output is not read. The wait for the reader is short, because a request that comes just
// before a write interrupts nothing; and a pipe that is ready takes PIPE_BUF bytes without a wait.
inline void tell(int descriptor, std::string_view text) {
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
