// The choice of the file that cuBLASLt is loaded from, or the error when there is none. Its tests need no toolkit and run everywhere.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "cuda/device/device.h"

namespace ricci {

// Tries to load one file. Returns the reason why it is not loaded, or an empty text if it is.
using LoadLibrary = std::function<std::string(const std::string& file)>;

// Loads the first of the files that can be loaded. The environment variable RICCI_WITHOUT_CUBLAS=1 asks for our own, slower
// kernels instead: then nothing is loaded, and the result is false. Error: none can be loaded; the one line names each file.
inline bool load_cublas(const std::vector<std::string>& files, const LoadLibrary& load) {
  if (is_switched_on("RICCI_WITHOUT_CUBLAS")) return false;
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
