// Products by oneDNN. c is cut into pieces by its shape alone and a piece is one call on one thread: the library's own
// threads would cut sums over k, and the bits would follow their number.
#include "cuda/gemm/backends.h"

#ifndef RICCI_HAS_ONEDNN

namespace ricci {
bool gemm_onednn(const Gemm&) { return false; }
void gemm_on_one_thread(const Gemm& g) { gemm_blocked(g); }
bool multiplies_bf16_faster() { return false; }
}  // namespace ricci

#else

#include <vector>

#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/memory/dry_run.h"
#include "cuda/gemm/onednn/pieces.h"
#include "cuda/gemm/onednn/product.h"

namespace ricci {
namespace onednn {
namespace {

constexpr int64_t kMaxTerms = 8192;  // longer sums are made in parts: pieces then find a and b in the caches
// The same for f32 where the columns of a are together, as in gradients of weights. Such products take 0.85 to 1.00 of the processor time
// that they take with sums over all terms at once (tests/bench/results/2026-11-22-products.json).
constexpr int64_t kMaxTermsF32 = 512;
constexpr int64_t kMaxOfColumn = 2047;  // terms of a b whose columns are together: of more, gemm_blocked is faster
// Rows of an f32 a whose columns are together: of more, gemm_blocked takes 0.5 to 0.98 of the time.
constexpr int64_t kMaxRowsOfTransposed = 1023;
constexpr double kMaxTermsBf16 = 1 << 26;  // multiplications; of more, gemm_blocked makes GPT-2's steps 6% faster

// The product as the library makes it. It adds its blocks of terms to c one after the other: rows of f32 that are far apart in
// memory would be fetched for each, so such a c is made without gaps in a buffer and copied.
Gemm as_made(const Gemm& g) {
  if (g.dtype != Dtype::bf16 || !g.c_f32 || g.accumulate || g.batch != 1) return g;
  if (g.m * g.n < kMinBuffered || g.m * g.n > kMaxBuffered) return g;
  thread_local std::vector<float> buffer_mn(kMaxBuffered);
  Gemm made = g;
  made.c = buffer_mn.data();
  made.c_at = {g.n, 1, g.m * g.n};
  return made;
}

bool unit_stride(const MatrixAt& strides, int64_t rows, int64_t columns) {
  return (strides.column_stride == 1 && strides.row_stride >= columns) || (strides.row_stride == 1 && strides.column_stride >= rows);
}

// True where gemm_blocked has been measured to be faster.
bool better_blocked(const Gemm& g) {
  if (g.dtype == Dtype::f32) {
    if (g.batch == 1 && g.a_at.column_stride != 1 && g.m > kMaxRowsOfTransposed && g.n >= kMin) return true;
    return g.b_at.column_stride != 1 && g.k > kMaxOfColumn && g.m >= kMin;
  }
  return cpu_isa() == Isa::avx512_bf16 && !cpu_has_bf16_tiles() && g.batch == 1 && double(g.m) * double(g.n) * double(g.k) > kMaxTermsBf16;
}

void multiply_piece(const Gemm& g) {
  const Gemm made = as_made(g);
  multiply(made);
  if (made.c != g.c) store_sums(static_cast<const float*>(made.c), g);
}

bool multiply_pieces(const Gemm& g) {
  const Pieces pieces(g);
  {
    const OneThread one;
    const Gemm piece = pieces[0], made = as_made(piece);
    if (!can_multiply(made)) return false;
    if (is_dry_run() && made.c != piece.c) keep_in_dry_run({kSumsKey}, thread_count() * kMaxBuffered * int64_t{sizeof(float)});
  }
  parallel_for(pieces.count, 1, [&](int64_t begin, int64_t end) {
    const OneThread one;
    for (int64_t i = begin; i < end; ++i) multiply_piece(pieces[i]);
  });
  return true;
}

}  // namespace
}  // namespace onednn

void gemm_on_one_thread(const Gemm& g) {
  if (g.dtype == Dtype::f64 || g.k == 0) return gemm_blocked(g);
  const onednn::OneThread one;
  onednn::multiply(g);
}

bool multiplies_bf16_faster() { return cpu_isa() == Isa::avx512_bf16; }

bool gemm_onednn(const Gemm& g) {
  using namespace onednn;
  if (g.dtype == Dtype::f64 || g.k == 0 || g.c_at.column_stride != 1) return false;
  if (!unit_stride(g.a_at, g.m, g.k) || !unit_stride(g.b_at, g.k, g.n)) return false;
  if (better_blocked(g)) return false;
  if (multiply_by_tiles(g)) return true;
  if (g.dtype == Dtype::bf16 && !g.c_f32) return multiply_pieces(g);  // sums are f32 to the end
  const int64_t most = g.dtype == Dtype::f32 && g.a_at.column_stride != 1 ? kMaxTermsF32 : kMaxTerms;
  const int64_t blocks = (g.k + most - 1) / most, terms = (g.k + blocks - 1) / blocks;
  for (int64_t first = 0; first < g.k; first += terms)
    if (!multiply_pieces(terms_of(g, first, terms))) return false;
  return true;
}

}  // namespace ricci

#endif
