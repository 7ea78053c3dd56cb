// Which build this is.
#pragma once
#include <string>

namespace ricci::apps {

// "commit 1a2b3c4, g++ 12.2.0": the commit ends with + where files differed from it, and is unknown outside a git checkout.
std::string build_info();

}  // namespace ricci::apps
