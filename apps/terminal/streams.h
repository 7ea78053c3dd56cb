// Standard streams: all of stdin, and output to a terminal, a pipe or a file whose reader may have stopped, as after Ctrl-S.
#pragma once
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "apps/terminal/signals.h"
#include "core/error.h"

namespace ricci::apps {

// A terminal that understands control sequences; and one on which colours are wanted (no-color.org).
inline bool is_terminal(int descriptor) {
  const char* const kind = std::getenv("TERM");
  return ::isatty(descriptor) == 1 && kind && std::string_view(kind) != "dumb";
}
inline bool has_colours(int descriptor) {
  const char* const unwanted = std::getenv("NO_COLOR");
  return is_terminal(descriptor) && !(unwanted && *unwanted);
}

// All of stdin, as it is. Error: it cannot be read.
inline std::string read_stdin() {
  std::string text;
  char block[1 << 16];
  while (const size_t bytes = std::fread(block, 1, sizeof block, stdin)) text.append(block, bytes);
  if (std::ferror(stdin)) fail("cannot read from stdin");
  return text;
}

// Writes to an open file, and waits for its reader as long as it takes. After a request to end (Interrupt) the waiting ends within a second
// in all, and what is left is dropped, as is output that cannot be written: no run ends or hangs because its output is not read.
inline void tell(int descriptor, std::string_view text) {
  constexpr size_t kBytes = 256;  // at a time, at most: a pipe or terminal that is ready takes them without waiting
  constexpr int kWait = 100;      // milliseconds between looks at the request to end
  constexpr int kMaxWaits = 10;
  if (descriptor < 0) return;
  static int waits = 0;  // since the request to end
  while (!text.empty()) {
    pollfd ready{descriptor, POLLOUT, 0};
    const int found = ::poll(&ready, 1, kWait);
    if (Interrupt::requested() && found <= 0 && ++waits > kMaxWaits) return;
    if (!Interrupt::requested()) waits = 0;
    if (found < 0 && errno != EINTR) return;
    if (found <= 0) continue;
    const ssize_t written = ::write(descriptor, text.data(), std::min(text.size(), kBytes));
    if (written < 0 && errno != EINTR && errno != EAGAIN) return;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace ricci::apps
