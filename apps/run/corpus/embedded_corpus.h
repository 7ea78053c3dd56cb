// A text that is always there, carried inside the program: documentation and sources of this project as they once were (embedded.tar.gz).
// It never changes, so that a run that learns it can go on after an update.
#pragma once
#include <string_view>

namespace ricci::apps {

std::string_view embedded_corpus();

}  // namespace ricci::apps
