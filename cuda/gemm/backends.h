// The implementations that gemm() chooses from. Each computes the full product. Extents are at least 1, but k can be 0. No implementation
// is fast for all shapes. With one row, for example, packing b takes longer than the product.
#pragma once
#include "cuda/gemm/gemm.h"

namespace ricci {

// For the CPU, any strides and every dtype: packed blocks, and a tile of c in registers. The results are bitwise identical for any division
// into tasks.
void gemm_blocked(const Gemm& g);

// For the CPU and at most 12 rows of a (bf16: 1): reads b without packing. Returns false and does nothing for more rows, or if the terms of
// b's columns are not contiguous.
bool gemm_few_rows(const Gemm& g);

// One matrix of a batch.
inline Gemm matrix_of(Gemm g, int64_t i) {
  const int64_t size = size_of(g.dtype);
  g.batch = 1;
  g.a = static_cast<const char*>(g.a) + i * g.a_at.batch_stride * size;
  g.b = static_cast<const char*>(g.b) + i * g.b_at.batch_stride * size;
  g.c = static_cast<char*>(g.c) + i * g.c_at.batch_stride * (g.c_f32 ? 4 : size);
  return g;
}

// For cuda and cuda_emulated, any strides and every dtype: tiles in shared memory.
void gemm_tiled(const Gemm& g);

// For cuda: calls cuBLASLt, loaded on first use, and also computes the row sums. Returns false and does nothing with
// RICCI_WITHOUT_CUBLAS=1, or if the library has no algorithm for this product (reported once on stderr). Errors: the library cannot be
// loaded (cuda/gemm/load_cublas.h), or a call fails (the message describes the product). Exists only in builds with the toolkit.
bool gemm_cublas(const Gemm& g);

}  // namespace ricci
