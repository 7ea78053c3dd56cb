// Standard streams: all of stdin, and output to a terminal, a pipe or a file whose reader may have stopped.
#pragma once
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <istream>
#include <string>
#include <string_view>

#include "apps/terminal/signals.h"
#include "core/error.h"
#include "cuda/ranks/launcher.h"

namespace ricci::apps {

// A terminal that understands control sequences; and one on which colours are wanted (no-color.org). mpirun gives its processes a terminal
// also where it writes their output to a file.
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

// Writes to an open file, and waits for its reader as long as it takes. After a request to end (Interrupt) the text is dropped where the
// reader does not take it at once, as is output that cannot be written: no run ends or hangs because its output is not read.
inline void tell(int descriptor, std::string_view text) {
  constexpr int kWait = 100;  // milliseconds between looks at the request to end
  while (descriptor >= 0 && !text.empty()) {
    pollfd ready{descriptor, POLLOUT, 0};
    const bool is_ready = ::poll(&ready, 1, kWait) > 0;
    if (!is_ready && Interrupt::requested()) return;
    if (!is_ready) continue;
    const ssize_t written = ::write(descriptor, text.data(), text.size());  // ends with EINTR at a request
    if (written < 0 && errno != EINTR && errno != EAGAIN) return;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace ricci::apps
