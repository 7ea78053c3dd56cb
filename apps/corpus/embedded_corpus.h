// A text that is always there: the sources and documentation of this project, carried inside the program.
#pragma once
#include <string>
#include <string_view>

namespace ricci::apps {

std::string_view embedded_corpus();

// The same as a file in `folder` (a temporary folder when that is empty or cannot be written), for readers of files;
// its name holds a hash of the text.
std::string embedded_corpus_file(const std::string& folder);

}  // namespace ricci::apps
