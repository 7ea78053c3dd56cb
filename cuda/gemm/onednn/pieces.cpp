#include "cuda/gemm/onednn/pieces.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/memory/dry_run.h"
#include "cuda/gemm/onednn/product.h"

namespace ricci::onednn {
namespace {

constexpr double kPieceTerms = 1 << 18;  // pieces = cbrt(multiplications / kPieceTerms)
constexpr double kMaxPieces = 64;

void copy_past_caches(const float* source, int64_t n, float* target) {
  int64_t i = 0;
#ifdef __SSE2__
  for (; i < n && reinterpret_cast<uintptr_t>(target + i) % 16 != 0; ++i) target[i] = source[i];
  for (; i + 4 <= n; i += 4) _mm_stream_ps(target + i, _mm_loadu_ps(source + i));
#endif
  for (; i < n; ++i) target[i] = source[i];
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

// ---- By tiles
namespace {

constexpr int64_t kRows = 256, kColumns = 768, kTerms = 512;  // at most, of a piece
constexpr int64_t kFewestPieces = 4;                          // with fewer, a piece takes half the rows
constexpr int64_t kWide = 4096;                               // columns of a b that is packed for few pieces rather than for many

bool is_dense(const MatrixAt& strides, int64_t rows, int64_t columns) {
  return (strides.column_stride == 1 && strides.row_stride == columns) || (strides.row_stride == 1 && strides.column_stride == rows);
}

// The strides and the data of a matrix without gaps: itself, or its copy in the buffer, whose lines go along rows or columns as its own.
MatrixAt dense_at(const MatrixAt& strides, int64_t rows, int64_t columns) {
  if (is_dense(strides, rows, columns)) return strides;
  return strides.column_stride == 1 ? MatrixAt{columns, 1, rows * columns} : MatrixAt{1, rows, rows * columns};
}
const void* dense(const void* matrix, const MatrixAt& strides, int64_t rows, int64_t columns, bf16* buffer) {
  if (is_dense(strides, rows, columns)) return matrix;
  const bool along_rows = strides.column_stride == 1;
  const int64_t lines = along_rows ? rows : columns, length = along_rows ? columns : rows,
                stride = along_rows ? strides.row_stride : strides.column_stride;
  for (int64_t i = 0; i < lines; ++i) std::copy_n(static_cast<const bf16*>(matrix) + i * stride, length, buffer + i * length);
  return buffer;
}

// The terms of a piece from `first` on, as they are multiplied: a, b and c have no gaps.
Gemm dense_terms(const Gemm& g, int64_t first) {
  Gemm part = terms_of(g, first, kTerms);
  part.a_at = dense_at(g.a_at, g.m, part.k);
  part.b_at = dense_at(g.b_at, part.k, g.n);
  part.c_at = {g.n, 1, g.m * g.n};
  return part;
}

// One piece of c, summed over parts of the terms in a buffer that stays in the cache.
void multiply_piece(const Gemm& g) {
  thread_local std::vector<bf16> a_buffer(kRows * kTerms), b_buffer(kTerms * kColumns);
  thread_local std::vector<float> c_buffer(kRows * kColumns);
  if (g.accumulate)
    for (int64_t i = 0; i < g.m; ++i) std::copy_n(static_cast<const float*>(g.c) + i * g.c_at.row_stride, g.n, c_buffer.data() + i * g.n);
  for (int64_t first = 0; first < g.k; first += kTerms) {
    Gemm part = dense_terms(g, first);
    part.a = dense(part.a, g.a_at, g.m, part.k, a_buffer.data());
    part.b = dense(part.b, g.b_at, part.k, g.n, b_buffer.data());
    part.c = c_buffer.data();
    multiply(part);
  }
  store_sums(c_buffer.data(), g);
}

// Counts in a dry run what multiply_piece keeps: its buffers, and the library's products for the parts of this piece.
void count_piece(const Gemm& g) {
  constexpr int64_t bytes = (kRows + kColumns) * kTerms * int64_t{sizeof(bf16)} + kRows * kColumns * int64_t{sizeof(float)};
  keep_in_dry_run({kTilesKey}, thread_count() * bytes);
  const OneThread one;
  for (int64_t first = 0; first < g.k; first += kTerms) can_multiply(dense_terms(g, first));
}

}  // namespace

bool suits_tiles(const Gemm& g) { return g.dtype == Dtype::bf16 && !g.c_f32 && g.batch == 1 && g.m >= 2 * kRows && cpu_has_bf16_tiles(); }

int64_t rows_for_tiles(const Gemm& g, int64_t wanted) { return std::max(16 * parts(g.m, 16 * wanted), g.n > kWide ? kRows : kRows / 2); }

bool multiply_by_tiles(const Gemm& g) {
  if (g.dtype != Dtype::bf16 || !g.c_f32 || g.batch != 1 || g.bias_n || !cpu_has_bf16_tiles() || g.k < kTerms || g.m < kMin || g.n < kMin)
    return false;
  const int64_t column_parts = parts(g.n, kColumns), large = parts(g.m, kRows);
  const int64_t row_parts = large * column_parts < kFewestPieces ? parts(g.m, kRows / 2) : large;
  const int64_t rows = 16 * parts(g.m, 16 * row_parts), columns = 16 * parts(g.n, 16 * column_parts);
  if (is_dry_run()) {
    count_piece(piece_of(g, 0, 0, rows, columns));
    return true;
  }
  parallel_for(row_parts * column_parts, 1, [&](int64_t begin, int64_t end) {
    const OneThread one;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / column_parts * rows, column = i % column_parts * columns;
      if (row < g.m && column < g.n) multiply_piece(piece_of(g, row, column, rows, columns));
    }
  });
  return true;
}

}  // namespace ricci::onednn
