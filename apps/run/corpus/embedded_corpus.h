// A text that is always there: the sources and documentation of this project, carried inside the program.
#pragma once
#include <string_view>

namespace ricci::apps {

std::string_view embedded_corpus();

}  // namespace ricci::apps
