// Products cut into smaller ones, for threads and for caches.
#pragma once
#include "cuda/gemm/gemm.h"

namespace ricci::onednn {

constexpr int64_t kMin = 48;                                       // fewer rows or columns are not cut
constexpr int64_t kMinBuffered = 1 << 15, kMaxBuffered = 3 << 17;  // elements of a c that stays in the cache

constexpr int64_t parts(int64_t n, int64_t most) { return (n + most - 1) / most; }

// The pieces that c is cut into: whole matrices, several to a piece, or each matrix into rows x columns. A function of the shape alone.
struct Pieces {
  const Gemm& g;
  int64_t matrices = 1, rows, columns, row_parts, column_parts, count;

  explicit Pieces(const Gemm& g_);
  Gemm operator[](int64_t i) const;

 private:
  void cut(int64_t wanted);
};

// c's rows and columns from `row` and `column` on, at most `rows` and `columns` of them.
Gemm piece_of(const Gemm& g, int64_t row, int64_t column, int64_t rows, int64_t columns);

// The terms from `first` on, at most `most` of them; all but the first terms are added to c.
Gemm terms_of(const Gemm& g, int64_t first, int64_t most);

// Writes c from sums without gaps, past the caches: the gradient of a large matrix is not needed again before all others are made.
void store_sums(const float* sums_mn, const Gemm& g);

// oneDNN multiplies bf16 by tiles (AMX) only if a, b and c have no gaps in memory. Without tiles a product takes two to three times
// longer.

// True for a product whose c is bf16 and is to be made by tiles. Its pieces are rows of a and c, and the whole of b: they have
// no gaps where a, b and c have none.
bool suits_tiles(const Gemm& g);
// The number of rows of the pieces of such a product, where about `wanted` pieces are to be made.
int64_t rows_for_tiles(const Gemm& g, int64_t wanted);

// Gradients of weights, long sums of f32: parts of a and b are copied where they have gaps. False, with nothing done: another product, or
// a processor without tiles.
bool multiply_by_tiles(const Gemm& g);

}  // namespace ricci::onednn
