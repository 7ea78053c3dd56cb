// The implementations that gemm() chooses from. Each computes the whole product. Extents are at least 1, except k, which may be 0.
#pragma once
#include "cuda/gemm/gemm.h"

namespace ricci {

// CPU, any strides, every dtype: packed blocks, and a tile of c in registers. The bits do not depend on how c is cut.
void gemm_blocked(const Gemm& g);

// CPU, m at most kFewRows (bf16: 1): reads b once, where it is. Returns false, with nothing done, for more rows, or if b has no stride of
// 1.
inline constexpr int64_t kFewRows = 4;
bool gemm_few_rows(const Gemm& g);

// cuda and cuda_emulated, any strides, every dtype: tiles in shared memory.
void gemm_tiled(const Gemm& g);

// cuda by cuBLASLt, which is loaded when first needed; with the epilogue. Returns false, with nothing done, with RICCI_WITHOUT_CUBLAS=1,
// or if the library has no algorithm for this product, which is reported once on stderr. Errors: it cannot be loaded
// (cuda/gemm/cublas/load_cublas.h), a call that fails, with the product. Only in builds with the toolkit.
bool gemm_cublas(const Gemm& g);

}  // namespace ricci
