#include "cuda/gemm/onednn/pieces.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cmath>

#include "cuda/gemm/onednn/tiles.h"

namespace ricci::onednn {
namespace {

constexpr double kPieceTerms = 1 << 18;  // n^3 times as many multiplications are cut into n pieces
constexpr double kMaxPieces = 64;

void copy_past_caches(const float* from, int64_t n, float* to) {
  int64_t i = 0;
#ifdef __SSE2__
  for (; i < n && reinterpret_cast<uintptr_t>(to + i) % 16 != 0; ++i) to[i] = from[i];
  for (; i + 4 <= n; i += 4) _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
#endif
  for (; i < n; ++i) to[i] = from[i];
}

}  // namespace

Pieces::Pieces(const Gemm& g_) : g(g_), rows(g_.m), columns(g_.n) {
  const double terms = static_cast<double>(g.batch * g.m * g.n * g.k);
  const auto wanted = static_cast<int64_t>(std::clamp(std::cbrt(terms / kPieceTerms), 1.0, kMaxPieces));
  if (g.batch >= wanted) matrices = parts(g.batch, wanted);
  else if (suits_tiles(g)) rows = rows_for_tiles(g, wanted);
  else cut(wanted);
  row_parts = parts(g.m, rows);
  column_parts = parts(g.n, columns);
  count = parts(g.batch, matrices) * row_parts * column_parts;
}

Gemm Pieces::operator[](int64_t i) const {
  const int64_t z = i / (row_parts * column_parts) * matrices, size = size_of(g.dtype), c_size = g.c_f32 ? 4 : size;
  Gemm piece = piece_of(g, i / column_parts % row_parts * rows, i % column_parts * columns, rows, columns);
  piece.batch = std::min(matrices, g.batch - z);
  piece.a = static_cast<const char*>(piece.a) + z * g.a_at.batch_stride * size;
  piece.b = static_cast<const char*>(piece.b) + z * g.b_at.batch_stride * size;
  piece.c = static_cast<char*>(piece.c) + z * g.c_at.batch_stride * c_size;
  return piece;
}

void Pieces::cut(int64_t wanted) {
  const int64_t most = g.dtype == Dtype::bf16 && g.c_f32 ? kMaxBuffered : g.m * g.n;
  for (int64_t made = g.batch; (made * 2 <= wanted || rows * columns > most) && (rows > kMin || columns > kMin); made *= 2) {
    int64_t& longer = rows > kMin && rows * 2 > columns ? rows : columns;  // rather rows: the columns of b get packed
    longer = parts(longer, 32) * 16;
  }
}

Gemm piece_of(const Gemm& g, int64_t row, int64_t column, int64_t rows, int64_t columns) {
  const int64_t size = size_of(g.dtype), c_size = g.c_f32 ? 4 : size;
  Gemm piece = g;
  piece.m = std::min(rows, g.m - row);
  piece.n = std::min(columns, g.n - column);
  piece.a = static_cast<const char*>(g.a) + row * g.a_at.row_stride * size;
  piece.b = static_cast<const char*>(g.b) + column * g.b_at.column_stride * size;
  piece.c = static_cast<char*>(g.c) + (row * g.c_at.row_stride + column) * c_size;
  if (g.bias_n) piece.bias_n = static_cast<const char*>(g.bias_n) + column * size;
  return piece;
}

Gemm terms_of(const Gemm& g, int64_t first, int64_t most) {
  const int64_t size = size_of(g.dtype);
  Gemm part = g;
  part.k = std::min(most, g.k - first);
  part.a = static_cast<const char*>(g.a) + first * g.a_at.column_stride * size;
  part.b = static_cast<const char*>(g.b) + first * g.b_at.row_stride * size;
  if (first > 0) {
    part.accumulate = true;
    part.bias_n = nullptr;
  }
  return part;
}

void store_sums(const float* sums_mn, const Gemm& g) {
  for (int64_t i = 0; i < g.m; ++i) copy_past_caches(sums_mn + i * g.n, g.n, static_cast<float*>(g.c) + i * g.c_at.row_stride);
#ifdef __SSE2__
  _mm_sfence();  // another thread reads them
#endif
}

}  // namespace ricci::onednn
