// Which build this is.
#pragma once
#include <string>

namespace ricci::apps {

// "ricci 0.1.0, commit 1a2b3c4d5e, g++ 12.2.0": the commit ends with + where files differed from it, and is unknown outside a git checkout.
std::string build_info();

}  // namespace ricci::apps
