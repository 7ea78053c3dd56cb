// The blocked product for the instruction sets, each with the tile that fills its registers.
#include "cuda/gemm/blocked.h"

#include "core/cpu/isa.h"
#include "cuda/gemm/backends.h"
#include "cuda/gemm/pairs.h"

namespace ricci {
namespace {

#if defined(__x86_64__)
struct Avx512 {
  static constexpr int kRows = 14, kBytes = 64;
  template <class Body> static void run(const Body& body) { run_avx512(body, 0, 1); }
};
struct Avx512Bf16 : Avx512 {
  template <class Body> static void run(const Body& body) { run_avx512_bf16(body, 0, 1); }
};
struct Amx : Avx512Bf16 {
  static constexpr int kRows = 32;
};
struct Avx2 {
  static constexpr int kRows = 6, kBytes = 32;
  template <class Body> static void run(const Body& body) { run_avx2(body, 0, 1); }
};
#endif
struct Baseline {
  static constexpr int kRows = 6, kBytes = 16;
  template <class Body> static void run(const Body& body) { run_baseline(body, 0, 1); }
};

template <class T, class C> void multiply(const Gemm& g) {
  switch (cpu_isa()) {
#if defined(__x86_64__)
    case Isa::amx:
      if constexpr (std::is_same_v<T, bf16>) return blocked::multiply<Amx, TilePairs<AmxTiles>, C>(g);
      [[fallthrough]];
    case Isa::avx512_bf16:
      if constexpr (std::is_same_v<T, bf16>) return blocked::multiply<Avx512Bf16, Pairs, C>(g);
      [[fallthrough]];
    case Isa::avx512: return blocked::multiply<Avx512, Single<T>, C>(g);
    case Isa::avx2: return blocked::multiply<Avx2, Single<T>, C>(g);
#endif
    default: return blocked::multiply<Baseline, Single<T>, C>(g);
  }
}

}  // namespace

void gemm_blocked(const Gemm& g) {
  switch (g.dtype) {
    case Dtype::f32: return multiply<float, float>(g);
    case Dtype::f64: return multiply<double, double>(g);
    default: return g.c_f32 ? multiply<bf16, float>(g) : multiply<bf16, bf16>(g);
  }
}

}  // namespace ricci
