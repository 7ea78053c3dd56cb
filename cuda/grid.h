// The blocks and threads that a kernel runs in, and the shared memory that it asks for beyond its own variables.
#pragma once
#include <cstdint>

namespace ricci {

struct Grid {
  int64_t blocks;
  int threads;
  int dynamic_shared_bytes = 0;
};

inline Grid thread_per(int64_t n, int threads = 256) { return {(n + threads - 1) / threads, threads}; }

}  // namespace ricci
