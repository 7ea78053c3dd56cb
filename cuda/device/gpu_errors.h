// The one-line messages for a GPU that cannot be used or that fails. cuda/toolkit passes the CUDA runtime's answers to these functions.
// They need no header of the toolkit, so every build tests them.
#pragma once
#include <string>
#include <string_view>

namespace ricci {

// The CUDA runtime's answers about this machine: versions as 1000 major + 10 minor, and the error as cudaError_t (0 without an error) with
// its text.
struct GpuFound {
  int error = 0;
  std::string_view error_text = "";
  int driver = 0;   // highest CUDA version that the installed driver supports; 0 without a driver
  int runtime = 0;  // CUDA version that this binary was built with
  int devices = 0;
  std::string_view visible = {};        // CUDA_VISIBLE_DEVICES, if it is set, even if empty
  std::string_view name = "";           // the GPU's name; the next three members also describe this GPU
  int major = 0, minor = 0;             // compute capability
  bool memory_pools = true;             // stream-ordered allocation
  std::string_view architectures = "";  // this binary's architectures, as in CMAKE_CUDA_ARCHITECTURES, separated by spaces
};

// The reason why the GPU cannot be used, in one line; empty if the GPU can be used.
std::string why_no_gpu(const GpuFound& found);

// True if code for these architectures ("80-real 90-virtual 90a") runs on a GPU of this compute capability. Machine code also runs on later
// minor versions of its major version, PTX on all later versions, and code for an "a" architecture only on that version. Other values, such
// as native and all, always match.
bool has_code_for(std::string_view architectures, int major, int minor);
// True if the GPU can run wgmma and this binary contains code that uses it: compute capability 9.0 and architecture 90a.
bool can_use_wgmma(std::string_view architectures, int major, int minor);

// Returns the message about a failed call: "copy from the GPU: an illegal memory access was encountered ...". An error in a kernel appears
// at a later call. The line then explains how to find the kernel, unless RICCI_SYNC=1 (`waited`) already makes the error appear at the
// kernel's launch.
std::string gpu_failure(std::string_view what, int error, std::string_view error_text, bool waited);

}  // namespace ricci
