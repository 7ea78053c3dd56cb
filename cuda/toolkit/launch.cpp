// Defines the functions that cuda/launch.h declares for nvcc: the checks around every launch, and the launch's name for profilers (NVTX;
// without a profiler this costs one call through a pointer). g++ compiles them here; only the launch itself needs nvcc.
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>

#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/device/gpu_errors.h"
#include "cuda/device/graph.h"
#include "cuda/toolkit/runtime.h"

namespace ricci::cuda_build {
namespace {

// With RICCI_SYNC=1, the host waits for every launch. Without it, an error appears at a later call and names no kernel.
bool waits() {
  static const bool yes = is_switched_on("RICCI_SYNC");
  return yes;
}

}  // namespace

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the error, so the next call does not report it again
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

void check_grid(const char* name, int64_t blocks, int threads) {
  if (blocks < 1 || blocks > 0x7fffffff || threads < 1 || threads > 1024)
    fail("{}: a grid of {} blocks of {} threads cannot be launched", {name, blocks, threads});
}

}  // namespace ricci::cuda_build
