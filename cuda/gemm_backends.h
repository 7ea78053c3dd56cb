// What gemm() chooses from. Every one computes the whole product; extents are at least 1 except k, which may be 0.
#pragma once
#include "cuda/gemm.h"

namespace ricci {

// CPU, any strides, every dtype: packed blocks and a tile of c in registers.
void gemm_blocked(const Gemm& g);

// CPU, m = 1: bound by reading b once. Error: m is not 1.
void gemm_vector(const Gemm& g);

// CPU, f32 and bf16 by oneDNN. False, with nothing done: the build or the library has no fast path for this product.
bool gemm_onednn(const Gemm& g);

// cuda and cuda_emulated, any strides, every dtype: tiles in shared memory.
void gemm_tiled(const Gemm& g);

// cuda by cuBLASLt, which is loaded when it is first needed. False, with nothing done: not found, or no algorithm for this
// product. Only in builds with the toolkit.
bool gemm_cublas(const Gemm& g);

}  // namespace ricci
