// for_short_rows(name, device, rows, n, program): like for_rows (cuda/verbs/rows.h), for rows that are much shorter than a thread block,
// such as the columns of one head. On the GPU, a warp works on a row. With a block per row, most threads would be idle. A step cannot read
// numbers that the step before it has stored, and each_piece does not exist.
#pragma once
#include "cuda/verbs/rows.h"

namespace ricci {

// The row as a warp: lane l handles the elements l, l + 32, ...
struct WarpRow {
  int64_t n;
  template <class F> __device__ void each(F f) const {
    for (int64_t i = threadIdx.x % 32; i < n; i += 32) f(i);
  }
  template <class F> __device__ auto sum(F f) const {
    decltype(f(int64_t{0})) total = 0;
    for (int64_t i = threadIdx.x % 32; i < n; i += 32) total += f(i);
    return warp_reduce(total, Sum{});
  }
  template <class F> __device__ void once(F f) const {
    if (threadIdx.x % 32 == 0) f();
  }
};

template <class Program> struct ShortRowKernel {
  static constexpr int kThreads = 256;
  int64_t rows, n;
  Program program;
  __device__ void operator()() const {
    const int64_t r = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
    if (r < rows) program(r, WarpRow{n});
  }
};

template <class Program> void for_short_rows(const char* name, Device device, int64_t rows, int64_t n, const Program& program);

#ifndef __CUDACC__

template <class Program> void for_short_rows(const char* name, Device device, int64_t rows, int64_t n, const Program& program) {
  constexpr int64_t kGrain = 16384;
  if (device != Device::cpu) return launch(name, device, thread_per(rows * 32), ShortRowKernel<Program>{rows, n, program});
  parallel_for(rows, n ? (kGrain + n - 1) / n : rows, [&](int64_t begin, int64_t end) {
    run_vectorized(RowLoop<Program>{n, program}, begin, end);
  });
}

#endif

#define CUDA_SHORT_ROWS(F)                \
  CUDA_KERNEL(ShortRowKernel<F<float>>);  \
  CUDA_KERNEL(ShortRowKernel<F<double>>); \
  CUDA_KERNEL(ShortRowKernel<F<bf16>>)

}  // namespace ricci
