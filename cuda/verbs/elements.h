// for_each_element(name, device, n, f): f(i) for every i in [0, n), in no particular order. A vectorised loop on the CPU, a
// thread per element on the GPU. CUDA_ELEMENTS(F) builds F<float>, F<double> and F<bf16> for the GPU.
// GPUs like memory in pieces of 16 bytes. A functor that touches nothing but element i of some arrays, reads the ones with const elements
// and writes the others, may name them:
//   template <class V> HD auto arrays(V visit) { return visit(x, y); }
// Then each thread loads 16 bytes of the array with the narrowest elements, and the same elements of the others, into registers, and runs
// its copy of the functor on these. Input and output may be one array under two names.
// A functor may have a member on_gpu(): it returns the functor that GPU threads run instead.
#pragma once
#include <type_traits>
#include <utility>

#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "cuda/launch.h"
#include "cuda/ptx.h"

namespace ricci {

// The functor that a GPU's threads run.
template <class F> __device__ inline auto on_gpu(const F& f) {
  if constexpr (requires { f.on_gpu(); }) return f.on_gpu();
  else return f;
}

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

// A thread's neighbours in one array.
template <class T, int kCount> struct Neighbours {
  alignas(16) std::remove_const_t<T> v[kCount];
  T* memory;

  __device__ char* piece(int i) { return reinterpret_cast<char*>(v) + 16 * i; }
  __device__ void take(T*& array, int64_t first) {
    memory = array + first;
    array = v;
    if constexpr (std::is_const_v<T>)
      for (int i = 0; i < static_cast<int>(sizeof v / 16); ++i) {
        const uint4 words = ptx::load16(reinterpret_cast<const char*>(memory) + 16 * i);
        __builtin_memcpy(piece(i), &words, 16);
      }
  }
  __device__ void give(T*& array) {
    array = memory;
    if constexpr (!std::is_const_v<T>)
      for (int i = 0; i < static_cast<int>(sizeof v / 16); ++i) {
        uint4 words;
        __builtin_memcpy(&words, piece(i), 16);
        ptx::store16(reinterpret_cast<char*>(memory) + 16 * i, words);
      }
  }
};

// The visitors for `arrays`: their types, and whether all begin at a multiple of 16 bytes.
template <class... Ts> struct ArrayTypes {
  static constexpr int count() {
    int most = 1;
    ((most = 16 / static_cast<int>(sizeof(Ts)) > most ? 16 / static_cast<int>(sizeof(Ts)) : most), ...);
    return most;
  }
};
struct TypesOfArrays {
  template <class... Ts> HD ArrayTypes<Ts...> operator()(Ts*&...) const { return {}; }
};
struct AllAligned {
  template <class... Ts> HD bool operator()(Ts*&... array) const { return ((reinterpret_cast<uintptr_t>(array) % 16 == 0) && ...); }
};
template <class F>
concept NamesArrays = requires(F f) {
  f.arrays(TypesOfArrays{});
};

template <class F> struct NeighboursKernel {
  static constexpr int kThreads = 256, kCount = decltype(std::declval<F&>().arrays(TypesOfArrays{}))::count();
  int64_t n;
  F f;

  __device__ void operator()() const {
    const int64_t first = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kCount;
    auto mine = on_gpu(f);
    if (first + kCount <= n && mine.arrays(AllAligned{})) return mine.arrays(InRegisters<decltype(mine)>{mine, first});
    for (int64_t i = first; i < first + kCount && i < n; ++i) mine(i);
  }

 private:
  template <class Mine> struct InRegisters {
    Mine& f;
    int64_t first;
    template <class... Ts> __device__ void operator()(Ts*&... array) const {
      [&](Neighbours<Ts, kCount>... here) {
        (here.take(array, first), ...);
        UNROLL(8)
        for (int k = 0; k < kCount; ++k) f(k);
        (here.give(array), ...);
      }(Neighbours<Ts, kCount>{}...);
    }
  };
};

template <class F> struct GpuElements { using Kernel = ElementKernel<F>; };
template <NamesArrays F> struct GpuElements<F> { using Kernel = NeighboursKernel<F>; };

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
  using Kernel = typename GpuElements<F>::Kernel;
  if (device != Device::cpu) return launch(name, device, thread_per((n + Kernel::kCount - 1) / Kernel::kCount), Kernel{n, f});
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) { run_vectorized(ElementLoop<F>{f}, begin, end); });
}

#endif

// Builds what for_each_element launches for the functor, and for F<float>, F<double> and F<bf16>.
#define CUDA_ELEMENT(...) CUDA_KERNEL(typename GpuElements<__VA_ARGS__>::Kernel)
#define CUDA_ELEMENTS(F)   \
  CUDA_ELEMENT(F<float>);  \
  CUDA_ELEMENT(F<double>); \
  CUDA_ELEMENT(F<bf16>)

}  // namespace ricci
