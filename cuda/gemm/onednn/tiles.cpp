#include "cuda/gemm/onednn/tiles.h"

#include <algorithm>
#include <vector>

#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "cuda/gemm/onednn/pieces.h"
#include "cuda/gemm/onednn/product.h"

namespace ricci::onednn {
namespace {

constexpr int64_t kRows = 256, kColumns = 768, kTerms = 512;  // of a piece, at most
constexpr int64_t kFewestPieces = 4;                          // of fewer, half as many rows are taken
constexpr int64_t kWide = 4096;                               // columns of a b that is packed for few pieces rather than for many

bool is_dense(const MatrixAt& at, int64_t rows, int64_t columns) {
  return (at.column_stride == 1 && at.row_stride == columns) || (at.row_stride == 1 && at.column_stride == rows);
}

// A matrix without gaps: itself, or its copy in the buffer, whose lines go along rows or columns as those of the matrix do.
struct Dense {
  const void* data;
  MatrixAt at;
};
Dense dense(const void* matrix, const MatrixAt& at, int64_t rows, int64_t columns, bf16* buffer) {
  if (is_dense(at, rows, columns)) return {matrix, at};
  const bool along_rows = at.column_stride == 1;
  const int64_t lines = along_rows ? rows : columns, length = along_rows ? columns : rows,
                stride = along_rows ? at.row_stride : at.column_stride;
  for (int64_t i = 0; i < lines; ++i) std::copy_n(static_cast<const bf16*>(matrix) + i * stride, length, buffer + i * length);
  return {buffer, along_rows ? MatrixAt{columns, 1, rows * columns} : MatrixAt{1, rows, rows * columns}};
}

// One piece of c, summed over parts of the terms in a buffer that stays in the cache.
void multiply_piece(const Gemm& g) {
  thread_local std::vector<bf16> a_buffer(kRows * kTerms), b_buffer(kTerms * kColumns);
  thread_local std::vector<float> c_buffer(kRows * kColumns);
  if (g.accumulate)
    for (int64_t i = 0; i < g.m; ++i) std::copy_n(static_cast<const float*>(g.c) + i * g.c_at.row_stride, g.n, c_buffer.data() + i * g.n);
  for (int64_t first = 0; first < g.k; first += kTerms) {
    Gemm part = terms_of(g, first, kTerms);
    const Dense a = dense(part.a, g.a_at, g.m, part.k, a_buffer.data()), b = dense(part.b, g.b_at, part.k, g.n, b_buffer.data());
    part.a = a.data;
    part.a_at = a.at;
    part.b = b.data;
    part.b_at = b.at;
    part.c = c_buffer.data();
    part.c_at = {g.n, 1, g.m * g.n};
    multiply(part);
  }
  store_sums(c_buffer.data(), g);
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
