// Products of bf16 by the instruction that multiplies pairs of them and adds both products to an f32 (AVX512-BF16). It takes
// and makes no subnormal numbers.
#pragma once
#if defined(__x86_64__)
#include "core/cpu/isa.h"
#include "cuda/gemm/tile.h"

namespace ricci {

#define RICCI_AVX512_BF16 RICCI_AVX512 ",avx512bf16"

// Two terms that follow each other in one word, the first in its lower half. The instructions are in assembly, as a compiler
// takes their intrinsics only in functions for this instruction set, and the tile is one for all. `?` changes nothing where there is one
// alternative. Without it, clang refuses a vector of 64 bytes in such a function.
struct Pairs {
  using Element = bf16;
  using Sum = float;
  using Packed = uint32_t;
  static constexpr int kTerms = 2;

  static bool in_place(int64_t line_stride, int64_t k_stride, int64_t k) { return k_stride == 1 && line_stride % 2 == 0 && k % 2 == 0; }
  static HD Packed load(const bf16* terms, int64_t k_stride, int64_t more) {
    return terms[0].bits | (more > 1 ? static_cast<uint32_t>(terms[k_stride].bits) << 16 : 0);
  }
  template <class Vec> static HD void multiply_add(Vec& sum, Packed a, const Vec& b) {
    typedef Packed Words __attribute__((vector_size(sizeof(Vec))));
    const Words all = Words{} + a;
    asm("vdpbf16ps %2, %1, %0" : "+?v"(sum) : "?v"(b), "?v"(all));
  }

  // sum += c; and c = sum
  template <class Vec> static HD void add(Vec& sum, const bf16* c) {
    Vec old;
    asm("vpmovzxwd %1, %0\n\tvpslld $16, %0, %0" : "=?v"(old) : "m"(*reinterpret_cast<const char(*)[sizeof(Vec) / 2]>(c)));
    sum = sum + old;
  }
  template <class Vec> static HD void put(const Vec& sum, bf16* c) {
    Vec rounded;
    asm("vcvtneps2bf16 %1, %t0" : "=?v"(rounded) : "?v"(sum));
    std::memcpy(c, &rounded, sizeof(Vec) / 2);
  }
};

template <class Body>
__attribute__((flatten, noinline, target(RICCI_AVX512_BF16))) void run_avx512_bf16(Body body, int64_t begin, int64_t end) {
  body(begin, end);
}

}  // namespace ricci
#endif
