// The comments on top of the config.yaml of a run, which tell the builds that trained it:
//   # ricci 0.1.0, commit 1a2b3c4d5e, g++ 12.2.0, device cpu (avx2), threads 2, seed 1337
//   # after step 250: ricci 0.1.0, commit 2b3c4d5e6f, g++ 12.2.0, device cpu (avx2), threads 2, seed 1337
// The first line of a folder that was made before lines told the version is "# commit 1a2b3c4d5e, ...".
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace ricci::apps {

// Line by line, without their ends.
inline std::vector<std::string_view> comments_on_top(std::string_view text) {
  std::vector<std::string_view> lines;
  while (text.starts_with('#')) {
    lines.push_back(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(lines.back().size() + 1, text.size()));
  }
  return lines;
}

inline bool tells_version(std::string_view comment) {
  return comment.starts_with("# ricci ") || (comment.starts_with("# after step ") && comment.find(": ricci ") != comment.npos);
}

inline bool tells_build(std::string_view comment) {
  return tells_version(comment) || comment.starts_with("# commit ") || comment.starts_with("# after step ");
}

// The lines that tell builds, oldest first, without their "# ".
inline std::vector<std::string> builds_in(std::string_view text) {
  std::vector<std::string> builds;
  for (const std::string_view comment : comments_on_top(text))
    if (tells_build(comment)) builds.emplace_back(comment.substr(2));
  return builds;
}

}  // namespace ricci::apps
