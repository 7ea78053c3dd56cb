// Shared by the files that call the CUDA runtime.
#pragma once
#include <cuda_runtime_api.h>

#include <string>

namespace ricci::cuda_build {

// Error: what the call returned, in one line with `what`.
void check(cudaError_t status, const char* what);
// The same where nothing may be thrown, at the end of a tensor or a stream: the line goes to stderr, and the next call is not to blame.
void report(cudaError_t status, const char* what);

// Loads a library of the toolkit when it is first needed, because programs must start where it is not installed. Null, with the system's
// reason, if it cannot be loaded.
void* open_library(const std::string& file, std::string& reason);

cudaStream_t stream();  // the current one of this OS thread

// Around everything that puts work of ours on the GPU under a name: a range of that name in profiles, and afterwards the
// status that the runtime returned; with RICCI_SYNC=1 the GPU has run it by then. Error: the status, with the name.
void begin_launch(const char* name);
void check_launch(const char* name, cudaError_t status);

// The stream ends: the memory that matrix products use on it goes back to the pool, in the order of the stream.
void forget_workspace(cudaStream_t stream);

}  // namespace ricci::cuda_build
