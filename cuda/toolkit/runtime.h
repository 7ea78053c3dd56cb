// Shared by the files that call the CUDA runtime.
#pragma once
#include <cuda_runtime_api.h>

#include <string>

namespace ricci::cuda_build {

// Error: the status, in one line with the name of the call.
void check(cudaError_t status, const char* call);
// check() for destructors. It does not throw: the line goes to stderr, and the next call does not report the error again.
void report(cudaError_t status, const char* call);

// Loads a library of the toolkit on first use, so programs start on machines without it. Returns null, with the system's reason, if it
// cannot be loaded.
void* open_library(const std::string& file, std::string& reason);

cudaStream_t stream();  // all work of this process is on it

// Called before and after a launch: a range with the name in profiles, and a check of the status that the runtime returned. With
// RICCI_SYNC=1 the second also waits for the GPU. Error: the status, with the name.
void begin_launch(const char* name);
void check_launch(const char* name, cudaError_t status);

}  // namespace ricci::cuda_build
