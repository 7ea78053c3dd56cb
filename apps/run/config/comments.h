// The comments in a text of YAML: those that somebody wrote, and those on top of the config.yaml of a run, which tell the builds
// that trained it:
//   # ricci 0.1.0, commit 1a2b3c4d5e, g++ 12.2.0, device cpu (avx2), threads 2, seed 1337
//   # after step 250: ricci 0.1.0, commit 2b3c4d5e6f, g++ 12.2.0, device cpu (avx2), threads 2, seed 1337
// The first line of a folder that was made before lines told the version is "# commit 1a2b3c4d5e, ...".
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace ricci::apps {

std::vector<std::string_view> comments_on_top(std::string_view text);  // line by line, without their ends
bool tells_build(std::string_view comment);
bool tells_version(std::string_view comment);
std::vector<std::string> builds_in(std::string_view text);  // the comments on top that tell builds, oldest first, without their "# "

// The YAML with the comments of another text of the same keys: lines of their own stay in front of the line of the same key,
// those behind a value stay behind it, and what follows the last key comes last.
std::string with_comments_of(const std::string& old_text, const std::string& yaml);

}  // namespace ricci::apps
