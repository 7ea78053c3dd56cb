// Products of bf16 with the instruction that multiplies two pairs and adds both products to an f32 (AVX512-BF16). The instruction does
// twice the work of an f32 instruction, and treats subnormal numbers as zeros.
#pragma once
#if defined(__x86_64__)
#include "core/cpu/isa.h"
#include "cuda/gemm/tile.h"

namespace ricci {

// Two successive terms in one word, the first in its lower half. The instructions are written in assembly. A compiler accepts their
// intrinsics only in functions for this instruction set, but one tile serves all instruction sets. The constraint `?` has no effect with
// one alternative, but without it, clang refuses a vector of 64 bytes in such a function.
struct Pairs {
  using Element = bf16;
  using Sum = float;
  using Packed = uint32_t;
  static constexpr int kTerms = 2, kUnit = 1;
  static constexpr bool kByTiles = false;

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

// The tiles of AMX hold 16 rows of 64 bytes: tiles 0 to 3 are sums, 4 and 5 are rows of a with 16 pairs each, 6 and 7 are 16 pairs of 16
// columns of b. Their instructions are in assembly for the reason above.
struct AmxTiles {
  // Sets the tiles of a and of c to Rows rows, at most 16, and all sums to zero.
  template <int Rows> static HD void begin() {
    constexpr uint8_t kFirst = Rows < 16 ? Rows : 16;
    struct alignas(64) Shape {
      uint8_t palette = 1, start = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {kFirst, kFirst, 16, 16, kFirst, 16, 16, 16};
    };
    static constexpr Shape shape{};
    asm volatile("ldtilecfg %0" ::"m"(shape));
  }
  template <int Tile> static HD void load(const void* rows, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(rows), "r"(stride), "i"(Tile) : "memory");
  }
  template <int Sum, int A, int B> static HD void multiply_add() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sum), "i"(A), "i"(B));
  }
  template <int Tile> static HD void store(void* rows) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(rows), "r"(int64_t{64}), "i"(Tile) : "memory");
  }
  static HD void end() { asm volatile("tilerelease"); }
};

// Pairs that are multiplied by such tiles, 32 rows by 32 columns at a time: four products for four loads.
template <class Tiles> struct TilePairs : Pairs {
  static constexpr int kUnit = 16;
  static constexpr bool kByTiles = true;

  static bool in_place(int64_t line_stride, int64_t k_stride, int64_t k) {
    return Pairs::in_place(line_stride, k_stride, k) && k % (kTerms * kUnit) == 0;
  }
  template <int Rows, class Vec>
  static HD void multiply(int64_t ks, const Lines<Packed>& a, const Lines<Packed>& b, Vec (&left)[Rows], Vec (&right)[Rows]) {
    constexpr bool kLower = Rows > 16;
    constexpr int64_t kBytes = sizeof(Packed);
    Tiles::template begin<Rows>();
    for (int64_t k = 0; k < ks; k += kUnit) {
      Tiles::template load<4>(a.first + k, a.stride * kBytes);
      Tiles::template load<6>(b.first + k * b.stride, b.stride * kBytes);
      Tiles::template load<7>(b.first + k * b.stride + 16, b.stride * kBytes);
      Tiles::template multiply_add<0, 4, 6>();
      Tiles::template multiply_add<1, 4, 7>();
      if constexpr (kLower) {
        Tiles::template load<5>(a.first + 16 * a.stride + k, a.stride * kBytes);
        Tiles::template multiply_add<2, 5, 6>();
        Tiles::template multiply_add<3, 5, 7>();
      }
    }
    Tiles::template store<0>(left);
    Tiles::template store<1>(right);
    if constexpr (kLower) {
      Tiles::template store<2>(left + 16);
      Tiles::template store<3>(right + 16);
    }
    Tiles::end();
  }
};

}  // namespace ricci
#endif
