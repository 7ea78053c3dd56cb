// The state of the stub of the CUDA runtime, shared by its files.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "core/error.h"
// The header of the CUDA runtime and the emulator have names in common. They get other names here. None of them is part of a signature in
// C.
#define dim3 cuda_dim3
#define float2 cuda_float2
#define uint3 cuda_uint3
#define uint4 cuda_uint4
#include <cuda_runtime_api.h>
#undef dim3
#undef float2
#undef uint3
#undef uint4
#undef __global__
#undef __device__
#undef __host__
#undef __launch_bounds__
#undef __grid_constant__
#undef __align__
#undef __forceinline__
// after it
#include "cuda/emulator/queue.h"
#include "tests/cuda/stub/stub.h"

struct CUstream_st {
  int gpu;
};
struct CUevent_st {
  int gpu;
  std::shared_ptr<bool> has_happened = std::make_shared<bool>(true);
};
struct CUgraph_st {
  emu::Recorded work;
};
struct CUgraphExec_st {
  std::shared_ptr<emu::Recorded> work;
};

namespace stub {

struct Allocation {
  size_t bytes, piece;
  uint64_t number;
};

struct State {
  std::recursive_mutex mutex;
  std::map<std::string, std::pair<int, int>> failures;  // calls left, status
  std::map<const char*, Allocation> allocations;
  std::multiset<size_t> pieces;  // free blocks of the pool
  size_t held = 0, limit = size_t{1} << 40;
  uint64_t next_number = 1;
  std::set<cudaStream_t> streams;
  cudaError_t sticky = cudaSuccess;
  std::string complaint;
  int products_run = 0;
};
State& state();

inline thread_local int gpu = 0;  // this OS thread's
inline thread_local cudaError_t last_error = cudaSuccess;
inline thread_local cudaStream_t captured = nullptr;
inline thread_local bool capture_spoilt = false;

cudaError_t wrong(cudaError_t error, const std::string& what);
cudaError_t not_while_capturing(const char* name);  // spoils the current capture
bool may_be_used(cudaStream_t stream);              // now, by this thread; else the message is the reason

// In its scope the emulator queues work: its errors appear at the wait.
class Lazily {
 public:
  Lazily() : before_(emu::options().lazy) { emu::options().lazy = true; }
  ~Lazily() { emu::options().lazy = before_; }
  Lazily(const Lazily&) = delete;

 private:
  bool before_;
};
void queue(std::function<void()> work);

// The body of every function: requested failures, the error that stays, the last error.
template <class F> cudaError_t call(const char* name, F body) {
  const std::lock_guard lock(state().mutex);
  cudaError_t error = state().sticky;
  if (!error) error = static_cast<cudaError_t>(ricci_stub_status(name));
  if (!error) try {
      error = body();
    } catch (const ricci::Error& mistake) {
      state().sticky = error = wrong(cudaErrorIllegalAddress, mistake.what());
    }
  if (error && error != cudaErrorNotReady) last_error = error;
  return error;
}

}  // namespace stub
