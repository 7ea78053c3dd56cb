// The functions that cuda/launch.h declares for the nvcc build: the checks around every launch, and its name for profilers (NVTX, which
// costs a call through a pointer when no profiler is there).
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <unordered_map>

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

// A kernel may have more shared memory than 48 KiB, its own variables included, only after a call that allows it. The size of its
// variables is not known here, so every kernel with dynamic memory is allowed what it asks for, once.
void allow_shared_memory(const char* name, const void* function, int bytes) {
  thread_local std::unordered_map<const void*, int> allowed;
  int& known = allowed[function];
  if (bytes <= known) return;
  check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), name);
  known = bytes;
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

void begin_launch(const char* name) { nvtxRangePushA(name); }

void check_launch(const char* name) {
  nvtxRangePop();
  check(cudaGetLastError(), name);
  if (waits() && !recording_graph()) check(cudaStreamSynchronize(stream()), name);
}

void prepare_launch(const char* name, const void* function, Grid grid) {
  if (grid.blocks < 1 || grid.blocks > 0x7fffffff || grid.threads < 1 || grid.threads > 1024)
    fail("{}: a grid of {} blocks of {} threads cannot be launched", {name, grid.blocks, grid.threads});
  allow_shared_memory(name, function, grid.dynamic_shared_bytes);
  begin_launch(name);
}

}  // namespace ricci::cuda_build
