// A stand-in for the CUDA runtime, to test cuda/toolkit on machines without a GPU. Memory and streams are the emulator's. It shows two GPUs
// and uses the second, so a thread that forgets to choose it shows. It is stricter than the runtime:
//   every stream is lazy: work runs when it is waited for, and reads host memory then;
//   memory that a call names must be in one live allocation; while a stream is captured, every call that CUDA forbids then is an error
//   and spoils the capture; the pool never divides or joins its blocks; the legacy stream is an error.
// A mistake in a kernel is cudaErrorIllegalAddress at the wait and at every later call, as on a GPU.
#pragma once
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>

#include "cuda/emulator/emulator.h"
#include "tests/cuda/stub/libraries/calls.h"

namespace stub {

// The n-th call of that function from now on fails with this status: of the runtime, of cuBLASLt or of NCCL.
void fail_call(const std::string& name, int nth, int status);
// Forgets requested failures and mistakes of kernels.
void forgive();
// The message of the emulator or the stub about the last mistake.
std::string& complaint();
// Limits the bytes of the pool.
void limit_pool(size_t bytes);

int products_run();  // by cuBLASLt, so far

// Launches a kernel as nvcc's triple brackets do. A mistake becomes the runtime's last error.
void launch(const emu::Launch& launch, void (*body)(const void*), const void* kernel, size_t bytes, void* stream);

// The words that `work` writes to stderr.
inline std::string written_by(const std::function<void()>& work) {
  std::fflush(stderr);
  FILE* const file = std::tmpfile();
  const int before = ::dup(2);
  ::dup2(::fileno(file), 2);
  work();
  std::fflush(stderr);
  ::dup2(before, 2);
  ::close(before);
  std::rewind(file);
  std::string text;
  for (int c; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
  std::fclose(file);
  return text;
}

}  // namespace stub
