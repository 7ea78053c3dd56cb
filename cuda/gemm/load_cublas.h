// Chooses the file of cuBLASLt, or throws an error that names the tried files. This header is not in cuda/toolkit, so its tests need no
// toolkit.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "cuda/device/device.h"

namespace ricci {

// Tries to load one file. Returns an empty text, or the reason why it was not loaded.
using LoadLibrary = std::function<std::string(const std::string& file)>;

// Loads the first file that can be loaded. With the environment variable RICCI_WITHOUT_CUBLAS=1 it loads nothing and returns false. Our
// own, slower kernels then compute the products. Error: no file can be loaded; the message names each file.
inline bool load_cublas(const std::vector<std::string>& files, const LoadLibrary& load) {
  if (is_switched_on("RICCI_WITHOUT_CUBLAS")) return false;
  std::string tried;
  for (const std::string& file : files) {
    const std::string reason = load(file);
    if (reason.empty()) return true;
    tried += (tried.empty() ? "" : ", ") + file + " (" + reason + ")";
  }
  fail("gemm: cuBLASLt cannot be loaded from {}; set LD_LIBRARY_PATH to its folder, or RICCI_WITHOUT_CUBLAS=1 to use our own, slower "
       "kernels",
      {tried});
}

}  // namespace ricci
