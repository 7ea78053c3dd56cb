#include "apps/terminal/output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "apps/terminal/interrupt.h"

namespace ricci::apps {
namespace {

// At most this many bytes at a time: a pipe or terminal that is ready takes them without waiting.
constexpr size_t kStep = 256;
constexpr int kWait = 100;  // milliseconds between looks at the request to end
constexpr int kMaxWaits = 10;

}  // namespace

void tell(int descriptor, std::string_view text) {
  if (descriptor < 0) return;
  static int waits = 0;  // since the request to end
  while (!text.empty()) {
    pollfd ready{descriptor, POLLOUT, 0};
    const int found = ::poll(&ready, 1, kWait);
    if (Interrupt::requested() && found <= 0 && ++waits > kMaxWaits) return;
    if (!Interrupt::requested()) waits = 0;
    if (found < 0 && errno != EINTR) return;
    if (found <= 0) continue;
    const ssize_t written = ::write(descriptor, text.data(), std::min(text.size(), kStep));
    if (written < 0 && errno != EINTR && errno != EAGAIN) return;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace ricci::apps
