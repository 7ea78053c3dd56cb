#include "apps/terminal/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "apps/terminal/numbers.h"
#include "apps/terminal/streams.h"
#include "core/cpu/available.h"

namespace ricci::apps {
namespace {

constexpr double kBarInterval = 0.1, kLineInterval = 10, kSampleInterval = 0.5, kMemory = 30;  // seconds
// Erases to the end of the screen: a terminal that becomes narrower wraps the bar over multiple rows.
constexpr const char* kErase = "\r\x1b[J";

}  // namespace

Progress::Progress(const ProgressOptions& options) : options_(options) {
  if (!options_.seconds) options_.seconds = seconds_now;
  terminal_ = options_.terminal.value_or(is_terminal(::fileno(options_.out)));
  const double now = options_.seconds();
  last_output_ = terminal_ ? now - kBarInterval : now;
  samples_.push_back({now, options_.first_step, 0});
}

void Progress::update(int64_t step, int64_t tokens, const std::string& note) {
  const double now = options_.seconds();
  // The newest sample is replaced until it is old enough to keep.
  if (samples_.size() > 1 && now - samples_[samples_.size() - 2].seconds < kSampleInterval) samples_.pop_back();
  samples_.push_back({now, step, tokens});
  while (samples_.size() > 2 && now - samples_[1].seconds >= kMemory) samples_.pop_front();

  if (!terminal_ && step >= options_.steps) return;  // other lines report the result
  if (now - last_output_ < (terminal_ ? kBarInterval : kLineInterval)) return;
  last_output_ = now;
  drawn_ = terminal_;
  if (!terminal_) return write(text(note, 0) + "\n");
  winsize size = {};
  const bool is_known = ::ioctl(::fileno(options_.out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  const int width = options_.width.value_or(is_known ? size.ws_col : 80);
  write(kErase + text(note, std::max(width - 1, 1)) + "\r");  // a full line would make some terminals scroll
}

void Progress::line(const std::string& text) {
  erase();
  write(text + "\n");
  if (terminal_) last_output_ -= kBarInterval;  // the bar is drawn again immediately
}

void Progress::erase() {
  if (drawn_) write(kErase);
  drawn_ = false;
}

void Progress::write(const std::string& text) const { write_output(::fileno(options_.out), text); }

// The bar fills the rest of the width. A width of 0 means no bar.
std::string Progress::text(const std::string& note, int width) const {
  const Sample &oldest = samples_.front(), &newest = samples_.back();
  const double all = static_cast<double>(std::max<int64_t>(options_.steps, 1));
  const double done = std::clamp(static_cast<double>(newest.step) / all, 0.0, 1.0);
  const std::string head = fmt::format("{} {}/{} ", options_.unit, with_commas(newest.step), with_commas(options_.steps));
  std::string tail = fmt::format("{:3.0f}%", std::floor(100 * done));
  if (!note.empty()) tail += "  " + note;
  const double seconds = newest.seconds - oldest.seconds;
  if (seconds > 0 && newest.step > oldest.step) {
    const double seconds_per_step = seconds / static_cast<double>(newest.step - oldest.step);
    const auto tokens = static_cast<double>(newest.tokens - oldest.tokens);
    if (tokens > 0) tail += fmt::format("  {} tokens/s", short_number(tokens / seconds));
    tail += fmt::format("  {} left", clock_time(seconds_per_step * (1 - done) * all));
  }
  if (width == 0) return head + tail;
  const int room = std::min(width - static_cast<int>(head.size() + tail.size()) - 3, 40);  // 3: brackets and a blank
  if (room < 5) return (head + tail).substr(0, static_cast<size_t>(width));
  const int filled = static_cast<int>(done * room);
  const std::string arrow = filled < room ? ">" : "";
  const std::string bar = std::string(static_cast<size_t>(filled), '=') + arrow;
  return head + fmt::format("[{:<{}}] ", bar, room) + tail;
}

}  // namespace ricci::apps
