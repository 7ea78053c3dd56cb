// Products by the tiles of AMX, on processors without AMX: the code with tiles in memory, against the definition.
#include "core/cpu/isa.h"
#include "cuda/gemm/blocked.h"
#include "cuda/gemm/pairs.h"
#include "tests/cuda/gemm/cases.h"
#include "tests/skip.h"

#if defined(__x86_64__)
using namespace gemm_cases;

namespace {

// The instructions as their manual defines them (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: LDTILECFG,
// TILELOADD, TDPBF16PS, TILESTORED).
struct EmulatedTiles {
  struct Tile {
    int rows;
    uint32_t words[16][16];
  };
  static inline thread_local Tile tiles[8];

  template <int Rows> static void begin() {
    for (int t = 0; t < 8; ++t) tiles[t] = {t == 0 || t == 1 || t == 4 ? std::min(Rows, 16) : 16, {}};
  }
  template <int T> static void load(const void* rows, int64_t stride) {
    for (int i = 0; i < tiles[T].rows; ++i) std::memcpy(tiles[T].words[i], static_cast<const char*>(rows) + i * stride, 64);
  }
  template <int Sum, int A, int B> static void multiply_add() {
    for (int i = 0; i < tiles[Sum].rows; ++i)
      for (int k = 0; k < 16; ++k)
        for (int j = 0; j < 16; ++j) {
          float& sum = reinterpret_cast<float(&)[16][16]>(tiles[Sum].words)[i][j];
          for (int shift : {0, 16}) {
            bf16 a, b;
            a.bits = static_cast<uint16_t>(tiles[A].words[i][k] >> shift);
            b.bits = static_cast<uint16_t>(tiles[B].words[k][j] >> shift);
            sum += static_cast<float>(a) * static_cast<float>(b);
          }
        }
  }
  template <int T> static void store(void* rows) { std::memcpy(rows, tiles[T].words, static_cast<size_t>(tiles[T].rows) * 64); }
  static void end() { std::memset(tiles, 0xff, sizeof tiles); }  // a read without a new begin() finds NaN
};

struct Emulated {
  static constexpr int kRows = 32, kBytes = 64;
  static constexpr int64_t kPiece = 512, kWays = 32;
  template <class Body> static void run(const Body& body) { run_with_vectors<64>(body, 0, 1); }
};

void multiply_by_tiles(const Gemm& g) {
  if (g.c_f32) return blocked::multiply<Emulated, TilePairs<EmulatedTiles>, float>(g);
  blocked::multiply<Emulated, TilePairs<EmulatedTiles>, bf16>(g);
}

}  // namespace

TEST_CASE("tiles: every layout, sizes around those of a tile, sums that are cut into blocks" * doctest::test_suite("needs AVX-512")) {
  if (cpu_isa() < Isa::avx512_bf16)
    return test::skip("needs a processor with AVX512-BF16, because its instructions round and convert the sums");
  std::vector<Case> cases;
  size_t turn = 0;
  for (const int64_t m : {1, 3, 15, 16, 17, 32, 47, 63, 100})
    for (const int64_t n : {1, 16, 33, 70})
      for (const int64_t k : {1, 2, 31, 32, 64, 95}) {
        ++turn;
        cases.push_back({turn % 5 == 0 ? 2 : 1, m, n, k, kLayouts[turn % 5], kLayouts[turn / 5 % 5], kLayouts[turn / 25 % 5], turn % 2 == 0,
            turn % 3 == 0, turn % 4 < 2});
      }
  cases.push_back({1, 70, 40, 2101, Layout::columns, Layout::rows, Layout::rows, true, false, true});
  cases.push_back({1, 40, 70, 2112, Layout::rows, Layout::columns, Layout::padded_rows, false, true});
  cases.push_back({1, 1100, 33, 64, Layout::padded_rows, Layout::rows});
  cases.push_back({1, 1100, 33, 96, Layout::columns, Layout::rows, Layout::rows, true, false, true});
  for (const Case& t : cases) {
    INFO("batch ", t.batch, ", m ", t.m, ", n ", t.n, ", k ", t.k, ", f32 ", t.c_f32);
    CHECK(worst_of(t, Dtype::bf16, Device::cpu, {multiply_by_tiles}) <= 1);
  }
}
#endif
