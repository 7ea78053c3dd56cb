// The functions that cuda/launch.h declares for the nvcc build: the checks around every launch, and its name for profilers (NVTX, which
// costs a call through a pointer when no profiler is there).
#include <nvtx3/nvToolsExt.h>

#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "cuda/device/gpu_errors.h"
#include "cuda/device/graph.h"
#include "cuda/grid.h"
#include "cuda/toolkit/runtime.h"

namespace ricci::cuda_build {
namespace {

// RICCI_SYNC=1: every launch is waited for, so that an error names the kernel that made it.
bool waits() {
  static const bool yes = [] {
    const char* value = std::getenv("RICCI_SYNC");
    return value && *value && std::string_view(value) != "0";
  }();
  return yes;
}

}  // namespace

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // what can be forgotten is: the next call is not to blame
  fail("{}", {gpu_failure(what, status, cudaGetErrorString(status), waits())});
}

void begin_launch(const char* name) { nvtxRangePushA(name); }

void check_launch(const char* name) {
  nvtxRangePop();
  check(cudaGetLastError(), name);
  if (waits() && !recording_graph()) check(cudaStreamSynchronize(stream()), name);
}

void prepare_launch(const char* name, const void* function, Grid grid) {
  if (grid.blocks < 1 || grid.blocks > 0x7fffffff || grid.threads < 1 || grid.threads > 1024)
    fail("{}: a grid of {} blocks of {} threads cannot be launched", {name, grid.blocks, grid.threads});
  if (grid.dynamic_shared_bytes > 48 * 1024)
    check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, grid.dynamic_shared_bytes), name);
  begin_launch(name);
}

}  // namespace ricci::cuda_build
