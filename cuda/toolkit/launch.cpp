// The functions that cuda/launch.h declares for the nvcc build: the checks around every launch, and its name for profilers (NVTX, which
// costs a call through a pointer when no profiler is there).
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>

#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/device/gpu_errors.h"
#include "cuda/device/graph.h"
#include "cuda/grid.h"
#include "cuda/toolkit/runtime.h"

namespace ricci::cuda_build {
namespace {

// RICCI_SYNC=1: every launch is waited for, so that an error names the kernel that made it.
bool waits() {
  static const bool yes = is_switched_on("RICCI_SYNC");
  return yes;
}

}  // namespace

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the sticky error, so that the next call does not report it again
  fail("{}", {gpu_failure(what, status, cudaGetErrorString(status), waits())});
}

void report(cudaError_t status, const char* what) {
  if (status == cudaSuccess || status == cudaErrorCudartUnloading) return;
  cudaGetLastError();
  std::fprintf(stderr, "%s\n", gpu_failure(what, status, cudaGetErrorString(status), waits()).c_str());
}

void* open_library(const std::string& file, std::string& reason) {
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) reason = dlerror();
  return library;
}

void begin_launch(const char* name) { nvtxRangePushA(name); }

void check_launch(const char* name, cudaError_t status) {
  nvtxRangePop();
  check(status, name);
  if (waits() && !recording_graph()) check(cudaStreamSynchronize(stream()), name);
}

void check_grid(const char* name, Grid grid) {
  if (grid.blocks < 1 || grid.blocks > 0x7fffffff || grid.threads < 1 || grid.threads > 1024)
    fail("{}: a grid of {} blocks of {} threads cannot be launched", {name, grid.blocks, grid.threads});
}

}  // namespace ricci::cuda_build
