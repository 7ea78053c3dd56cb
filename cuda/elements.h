// for_each_element(name, device, n, f): f(i) for every i in [0, n), in no particular order. A vectorised loop on the CPU, a
// thread per element on the GPU. CUDA_ELEMENTS(F, types...) builds F<T> for the GPU.
#pragma once
#include "cuda/isa.h"
#include "cuda/launch.h"
#include "cuda/parallel.h"

namespace ricci {

template <class F> struct ElementKernel {
  static constexpr int kThreads = 256;
  int64_t n;
  F f;
  __device__ void operator()() const {
    const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < n) f(i);
  }
};

template <class F> void for_each_element(const char* name, Device device, int64_t n, const F& f);

#ifndef __CUDACC__

template <class F> struct ElementLoop {
  F f;
  inline __attribute__((always_inline)) void operator()(int64_t begin, int64_t end) const {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) f(i);
  }
};

template <class F> void for_each_element(const char* name, Device device, int64_t n, const F& f) {
  constexpr int64_t kGrain = 16384;
  if (device != Device::cpu) return launch(name, device, thread_per(n), ElementKernel<F>{n, f});
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) { run_vectorized(ElementLoop<F>{f}, begin, end); });
}

#endif

#define CUDA_ELEMENTS(F) \
  CUDA_KERNEL(ElementKernel<F<float>>); \
  CUDA_KERNEL(ElementKernel<F<double>>); \
  CUDA_KERNEL(ElementKernel<F<bf16>>)

}  // namespace ricci
