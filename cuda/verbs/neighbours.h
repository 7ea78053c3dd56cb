// The kernel of for_each_element for functors that name their arrays (cuda/verbs/elements.h). Memory on a GPU is fastest in packs of 16
// bytes, but nvcc makes such accesses only if it knows that the address is a multiple of 16. So each thread loads 16 bytes of the array
// with the narrowest elements, and the same elements of the other arrays, into registers. It then runs its copy of the functor on the
// registers:
//   take()   loads the arrays of const elements and points the functor at the registers
//   f(k)     for each of the contiguous elements k
//   give()   stores the arrays of other elements
// Input and output can be the same array. If arrays or ends are not at multiples of 16 bytes, a thread runs element by element.
#pragma once
#include <type_traits>
#include <utility>

#include "cuda/ptx.h"

namespace ricci {

// The functor that a GPU's threads run.
template <class F> __device__ inline auto on_gpu(const F& f) {
  if constexpr (requires { f.on_gpu(); }) return f.on_gpu();
  else return f;
}

// A thread's contiguous elements in one array.
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

// The visitors for `arrays`: they find the arrays' types, and whether all begin at a multiple of 16 bytes.
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

}  // namespace ricci
