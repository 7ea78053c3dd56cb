// Vectors of `Bytes` bytes with elements of type A, as the compiler's own vector type. Everything is inlined into functions that are
// compiled for an instruction set with such vectors (core/cpu/isa.h). Use vectors for arithmetic only. g++ turns comparisons of vectors
// into scalar code.
#pragma once
#include <cstddef>
#include <type_traits>
#include <utility>

#include "core/cpu/isa.h"
#include "core/dtype.h"

namespace ricci {

// A vector in a tensor is aligned only to its elements. g++ keeps this alignment with the type. Clang loses the alignment when the type is
// a template argument or a return type, so with Clang, values have a different type and pass through load() and store().
#ifdef __clang__
constexpr bool kAlignedValues = true;
#else
constexpr bool kAlignedValues = false;
#endif

template <class A, int Bytes> struct Vectors {
  static constexpr int kLanes = Bytes / static_cast<int>(sizeof(A));
  static constexpr int kRegisters = Bytes == 16 ? kBaselineRegisters : Bytes / 2;
  static constexpr int kRows = kRegisters / 4;  // number of rows, of two vectors each, that fit into the registers
  typedef A Vector __attribute__((vector_size(Bytes), aligned(kAlignedValues ? Bytes : sizeof(A))));
  typedef A Stored __attribute__((vector_size(Bytes), aligned(sizeof(A))));  // a vector in a tensor

  template <class T> HD static void load(const T* from, Vector& v) {
    if constexpr (std::is_same_v<T, A>) {
      v = *reinterpret_cast<const Stored*>(from);
    } else {
      A values[kLanes];
#pragma omp simd
      for (int i = 0; i < kLanes; ++i) values[i] = A(from[i]);
      v = *reinterpret_cast<const Stored*>(values);
    }
  }

  HD static void store(A* to, const Vector& v) { *reinterpret_cast<Stored*>(to) = v; }

  // Sums the n lanes: adds lanes i and i + n/2, then the n/2 sums in the same way, until one is left.
  HD static A sum(const Vector& v) {
    Vector total = v;
    halve<kLanes / 2>(total, std::make_index_sequence<kLanes>());
    return total[0];
  }

 private:
  template <std::size_t n, std::size_t... Lane> HD static void halve(Vector& v, std::index_sequence<Lane...> lanes) {
    v += __builtin_shufflevector(v, v, ((Lane + n) % kLanes)...);
    if constexpr (n > 1) halve<n / 2>(v, lanes);
  }
};

// Calls f with the length of this CPU's vectors in bytes, as a constant.
template <class F> void with_vectors(F f) {
  switch (cpu_isa()) {
#ifdef RICCI_WIDE_LOOPS
    case Isa::amx:
    case Isa::avx512_bf16:
    case Isa::avx512: return f(std::integral_constant<int, 64>());
    case Isa::avx2: return f(std::integral_constant<int, 32>());
#endif
    default: return f(std::integral_constant<int, 16>());
  }
}

}  // namespace ricci
