// Compiles the blocked product for each instruction set, with the tile that fills its registers.
#include "cuda/gemm/blocked.h"

#include "core/cpu/isa.h"
#include "cuda/gemm/backends.h"
#include "cuda/gemm/pairs.h"

namespace ricci {
namespace {

// kPiece words of each column of a panel are multiplied at a time. Rows of a that need more than kWays ways of the L1 cache are packed.
template <int Rows, int Bytes, int64_t Piece, int64_t Ways> struct Registers {
  static constexpr int kRows = Rows, kBytes = Bytes;
  static constexpr int64_t kPiece = Piece, kWays = Ways;
  template <class Body> static void run(const Body& body) { run_with_vectors<Bytes>(body, 0, 1); }
};

// With 16 columns, 256 terms of a panel fill half of an L1 cache of 32 KB and leave 4 of its 8 ways for a. With 32 columns, it is fastest
// to multiply all 512 terms in one part and never to pack rows of a (measured on an Intel Xeon of model 207 with 48 KB in 12 ways,
// 2026-11-28). NEON has twice the registers of SSE2, so a tile has twice the rows; speeds on ARM were not measured.
using Baseline = Registers<kBaselineRegisters == 32 ? 12 : 6, 16, 512, 4>;
using Avx2 = Registers<6, 32, 256, 4>;
using Avx512 = Registers<14, 64, 512, 14>;
using Amx = Registers<32, 64, 512, 32>;

template <class T, class C> void multiply(const Gemm& g) {
  switch (cpu_isa()) {
#if defined(__x86_64__)
    case Isa::amx:
      if constexpr (std::is_same_v<T, bf16>) return blocked::multiply<Amx, TilePairs<AmxTiles>, C>(g);
      [[fallthrough]];
    case Isa::avx512_bf16:
      if constexpr (std::is_same_v<T, bf16>) return blocked::multiply<Avx512, Pairs, C>(g);
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
