// Where a generated text ends: in front of the string that is complete first of those given.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ricci::apps {

// The text comes in pieces, and a stop string may be spread over several. What might be the beginning of one is held back.
class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> strings);  // error: an empty one

  // What may be shown once this piece is known. Nothing after a stop string was met.
  std::string next(std::string_view piece);
  // What was held back, when no more pieces come.
  std::string end();
  bool met() const { return met_; }

 private:
  std::vector<std::string> strings_;
  std::string held_;
  bool met_ = false;
};

}  // namespace ricci::apps
