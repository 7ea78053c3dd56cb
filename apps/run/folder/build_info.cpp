#include "apps/run/folder/build_info.h"

#include <ricci_commit.h>  // made by apps/commit.cmake

namespace ricci::apps {

std::string build_info() {
#ifdef __clang__
  return "ricci " RICCI_VERSION ", commit " RICCI_COMMIT ", clang++ " __clang_version__;
#else
  return "ricci " RICCI_VERSION ", commit " RICCI_COMMIT ", g++ " __VERSION__;
#endif
}

}  // namespace ricci::apps
