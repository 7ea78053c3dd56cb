// The blocked product for the instruction sets, each with the tile that fills its registers.
#include "cuda/gemm/blocked.h"

#include "core/cpu/isa.h"
#include "cuda/gemm/backends.h"
#include "cuda/gemm/pairs.h"

namespace ricci {
namespace {

template <int Rows, int Bytes> struct Registers {
  static constexpr int kRows = Rows, kBytes = Bytes;
  template <class Body> static void run(const Body& body) { run_with_vectors<Bytes>(body, 0, 1); }
};

template <class T, class C> void multiply(const Gemm& g) {
  switch (cpu_isa()) {
#if defined(__x86_64__)
    case Isa::amx:
      if constexpr (std::is_same_v<T, bf16>) return blocked::multiply<Registers<32, 64>, TilePairs<AmxTiles>, C>(g);
      [[fallthrough]];
    case Isa::avx512_bf16:
      if constexpr (std::is_same_v<T, bf16>) return blocked::multiply<Registers<14, 64>, Pairs, C>(g);
      [[fallthrough]];
    case Isa::avx512: return blocked::multiply<Registers<14, 64>, Single<T>, C>(g);
    case Isa::avx2: return blocked::multiply<Registers<6, 32>, Single<T>, C>(g);
#endif
    default: return blocked::multiply<Registers<6, 16>, Single<T>, C>(g);
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
