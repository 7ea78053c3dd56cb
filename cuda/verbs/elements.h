// for_each_element(name, device, n, f): calls f(i) for every i in [0, n), in no particular order. On the CPU this is a vectorized loop that
// the threads share; on the GPU, one thread handles one element. Elements run at the same time, so none can depend on another.
//   struct Scale { const float* x; float* y; HD void operator()(int64_t i) const { y[i] = 2 * x[i]; } };
//   for_each_element("scale", device, n, Scale{x, y});
// CUDA_ELEMENTS(F) builds F<float>, F<double> and F<bf16> for the GPU.
//
// A functor can have two members, both only for speed on the GPU:
//   template <class V> HD auto arrays(V visit) { return visit(x, y); }
//     The functor uses only element i of these arrays, reads the arrays of const elements and writes the others. A thread then handles 16
//     bytes together (cuda/verbs/neighbours.h).
//   auto on_gpu() const
//     Returns the functor that GPU threads run instead.
#pragma once
#include <type_traits>

#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "cuda/launch.h"
#include "cuda/verbs/neighbours.h"

namespace ricci {

#ifndef __CUDACC__

template <class F> struct ElementLoop {
  F f;
  inline __attribute__((always_inline)) void operator()(int64_t begin, int64_t end) const {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) f(i);
  }
};

#endif

template <class F> struct ElementKernel {
  static constexpr int kThreads = 256, kCount = 1;
  int64_t n;
  F f;
  __device__ void operator()() const {
    const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if constexpr (requires { f.on_gpu(); }) f.on_gpu()(i);
    else f(i);
  }
};

template <class F> using ElementKernelOf = std::conditional_t<NamesArrays<F>, NeighboursKernel<F>, ElementKernel<F>>;

template <class F> void for_each_element(const char* name, Device device, int64_t n, const F& f);

#ifndef __CUDACC__

template <class F> void for_each_element(const char* name, Device device, int64_t n, const F& f) {
  constexpr int64_t kGrain = 16384;  // elements of one task; fewer would cost more to distribute than to compute
  using Kernel = ElementKernelOf<F>;
  if (device != Device::cpu) return launch(name, device, thread_per((n + Kernel::kCount - 1) / Kernel::kCount), Kernel{n, f});
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) { run_vectorized(ElementLoop<F>{f}, begin, end); });
}

#endif

// Builds the kernel of for_each_element for one functor, and for F<float>, F<double> and F<bf16>.
#define CUDA_ELEMENT(...) CUDA_KERNEL(ElementKernelOf<__VA_ARGS__>)
#define CUDA_ELEMENTS(F)   \
  CUDA_ELEMENT(F<float>);  \
  CUDA_ELEMENT(F<double>); \
  CUDA_ELEMENT(F<bf16>)

}  // namespace ricci
