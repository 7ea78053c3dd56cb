// Helpers for callers of the CUDA runtime.
#pragma once
#include <cuda_runtime_api.h>

#include <string>

namespace ricci::cuda_build {

// Throws if the status is an error, with one line that names the call.
void check(cudaError_t status, const char* call);
// Like check(), for destructors. It does not throw: it prints the line to stderr, and the next call does not report the error again.
void report(cudaError_t status, const char* call);

// Loads a library of the toolkit on first use, so programs start on machines without it. Returns null, with the system's reason, if it
// cannot be loaded.
void* open_library(const std::string& file, std::string& reason);

cudaStream_t stream();  // all work of this process is on it

// Called before and after a launch. They mark a range with the name in profiles, and check the status that the runtime returned. With
// RICCI_SYNC=1, check_launch() also waits for the GPU. Error, with the name and the status: the launch failed.
void begin_launch(const char* name);
void check_launch(const char* name, cudaError_t status);

}  // namespace ricci::cuda_build
