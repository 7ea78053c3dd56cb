// Where a generated text ends: in front of the string that is complete first of those given.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"

namespace ricci::apps {

// The text comes in pieces, and a stop string may be spread over several. What might be the beginning of one is held back.
class StopStrings {
 public:
  // Error: an empty string.
  explicit StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
    for (const std::string& each : strings_)
      if (each.empty()) fail("stop string: is empty");
  }

  // What may be shown once this piece is known. Nothing after a stop string was met.
  std::string next(std::string_view piece) {
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
  // What was held back, when no more pieces come.
  std::string end() { return std::exchange(held_, {}); }
  bool met() const { return met_; }

 private:
  // Bytes at the end of the text with which the string begins.
  static size_t begun(std::string_view text, std::string_view string) {
    for (size_t bytes = std::min(text.size(), string.size() - 1); bytes > 0; --bytes)
      if (text.ends_with(string.substr(0, bytes))) return bytes;
    return 0;
  }

  std::vector<std::string> strings_;
  std::string held_;
  bool met_ = false;
};

}  // namespace ricci::apps
