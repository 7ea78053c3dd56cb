// The messages for a GPU that cannot be used or fails, one line each. cuda/toolkit passes the CUDA runtime's answers to these functions.
// They need no header of the toolkit, so every build tests them.
#pragma once
#include <string>
#include <string_view>

namespace ricci {

// The CUDA runtime's answers about this machine: versions as 1000 major + 10 minor, error as cudaError_t (0 without an error) with its
// text.
struct GpuFound {
  int error = 0;
  std::string_view error_text = "";
  int driver = 0;   // highest CUDA version that the installed driver supports; 0 without a driver
  int runtime = 0;  // that this binary was built with
  int devices = 0;
  std::string_view visible = {};        // CUDA_VISIBLE_DEVICES, if set, even to an empty text
  std::string_view name = "";           // the GPU's, as are the next three
  int major = 0, minor = 0;             // compute capability
  bool memory_pools = true;             // stream-ordered allocation
  std::string_view architectures = "";  // this binary's, as CMAKE_CUDA_ARCHITECTURES, with blanks between
};

// Why the GPU cannot be used, in one line; empty when it can.
std::string why_no_gpu(const GpuFound& found);

// True if code for these architectures ("80-real 90-virtual 90a") runs on a GPU of that compute capability. Machine code runs on later
// minor versions of its major version, PTX on everything later, and code for an "a" only on that version. Other words (native, all) always
// match.
bool has_code_for(std::string_view architectures, int major, int minor);
// True if the GPU can run wgmma and this binary has code with it: compute capability 9.0 and architecture 90a.
bool can_use_wgmma(std::string_view architectures, int major, int minor);

// The line about a failed call: "copy from the GPU: an illegal memory access was encountered ...". An error of a kernel shows at a later
// call. The line then explains how to find the kernel, unless RICCI_SYNC=1 (`waited`) already makes the error show at its launch.
std::string gpu_failure(std::string_view what, int error, std::string_view error_text, bool waited);

}  // namespace ricci
