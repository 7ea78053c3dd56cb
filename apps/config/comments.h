// The comments that somebody wrote into a text of YAML.
#pragma once
#include <string>

namespace ricci::apps {

// The YAML with the comments of another text of the same keys: lines of their own stay in front of the line of the same key,
// those behind a value stay behind it, and what follows the last key comes last.
std::string with_comments_of(const std::string& old_text, const std::string& yaml);

}  // namespace ricci::apps
