#include "cuda/gemm/load_cublas.h"

#include <cstdlib>
#include <string_view>

#include "core/error.h"

namespace ricci {
namespace {

bool asked_to_go_without() {
  const char* value = std::getenv("RICCI_WITHOUT_CUBLAS");
  return value && *value && std::string_view(value) != "0";
}

}  // namespace

bool load_cublas(const std::vector<std::string>& files, const LoadLibrary& load) {
  if (asked_to_go_without()) return false;
  std::string tried;
  for (const std::string& file : files) {
    const std::string reason = load(file);
    if (reason.empty()) return true;
    tried += (tried.empty() ? "" : ", ") + file + " (" + reason + ")";
  }
  fail("gemm: cuBLASLt cannot be loaded; tried {}; set LD_LIBRARY_PATH to its folder, or RICCI_WITHOUT_CUBLAS=1 to use our own, slower "
       "kernels",
      {tried});
}

}  // namespace ricci
