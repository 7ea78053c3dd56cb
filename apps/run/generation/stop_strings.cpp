#include "apps/run/generation/stop_strings.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace ricci::apps {
namespace {

// Bytes at the end of the text with which the string begins.
size_t begun(std::string_view text, std::string_view string) {
  for (size_t bytes = std::min(text.size(), string.size() - 1); bytes > 0; --bytes)
    if (text.ends_with(string.substr(0, bytes))) return bytes;
  return 0;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
  for (const std::string& each : strings_)
    if (each.empty()) fail("stop string: is empty");
}

std::string StopStrings::next(std::string_view piece) {
  // Byte by byte, so that the first string that is complete counts, however the text is divided.
  for (const char byte : piece) {
    if (met_) break;
    held_ += byte;
    size_t longest = 0;
    for (const std::string& each : strings_)
      if (held_.ends_with(each)) longest = std::max(longest, each.size());
    met_ = longest > 0;
    held_.resize(held_.size() - longest);
  }
  if (met_) return end();
  size_t kept = 0;
  for (const std::string& each : strings_) kept = std::max(kept, begun(held_, each));
  std::string text = held_.substr(0, held_.size() - kept);
  held_.erase(0, text.size());
  return text;
}

std::string StopStrings::end() { return std::exchange(held_, {}); }

}  // namespace ricci::apps
