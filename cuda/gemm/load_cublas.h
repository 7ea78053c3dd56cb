// Which file cuBLASLt is loaded from, and what happens when there is none. Needs no toolkit, so that its tests run everywhere.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace ricci {

// Tries to load one file. Empty: it is loaded. Otherwise the reason why it is not.
using LoadLibrary = std::function<std::string(const std::string& file)>;

// Loads the first of the files that can be loaded. The environment variable RICCI_WITHOUT_CUBLAS=1 asks for our own, slower
// kernels instead: then nothing is loaded, and the result is false. Error: none can be loaded; the one line names each file.
bool load_cublas(const std::vector<std::string>& files, const LoadLibrary& load);

}  // namespace ricci
