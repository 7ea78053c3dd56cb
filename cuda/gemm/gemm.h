// One door for matrix products on every device:  c_mn = sum_k a_mk b_kn (+ c_mn) (+ bias_n), a batch of them at once.
// A matrix is a pointer and three strides, so that transposed matrices, views and heads inside a row need no copy.
#pragma once
#include "core/tensor.h"

namespace ricci {

// The place of element (row, column) of matrix i, in elements: i * batch_stride + row * row_stride + column * column_stride.
struct MatrixAt {
  int64_t row_stride, column_stride, batch_stride;
};

// Work that cuBLASLt does within a product (gemm_fused), with the memory `beside` its result.
enum class Epilogue : uint8_t {
  none,
  row_sums,       // writes sum_k a_mk to beside_m, which is of c's type
  gelu,           // c = gelu_tanh(x), x_mn = a b + bias_n; x is written to beside_mn, laid out as c, unless that is null
  gelu_gradient,  // c = (a b) gelu_tanh'(x), x_mn read from beside_mn, laid out as c
};

struct Gemm {
  Device device;
  Dtype dtype;  // the dtype of a, b, c and bias_n: f32, f64 or bf16; bf16 is summed in f32
  int64_t batch, m, n, k;
  const void *a, *b;
  MatrixAt a_at, b_at;
  void* c;  // overlaps neither a nor b
  MatrixAt c_at;
  bool accumulate = false;       // c is added to instead of written
  const void* bias_n = nullptr;  // added to every row of every matrix
  bool c_f32 = false;            // with bf16 only: c is f32
  Epilogue epilogue = Epilogue::none;
  void* beside = nullptr;
};

// On the CPU the bits do not depend on the number of threads. With k = 0 the sum is 0.
// Errors: a dtype that is not floating-point, negative extents, c_f32 without bf16, a device that is not available, an epilogue.
void gemm(const Gemm& g);

// The same product with its epilogue, where cuBLASLt has one: on cuda. Returns false, with nothing done, anywhere else, and where the
// library refuses the epilogue, which is reported once on stderr; then the caller takes a gemm and adds what is missing. Errors: as gemm.
bool gemm_fused(const Gemm& g);

// The gradient of weights and the gradient of the bias beside them: computes the product g and returns sums_m = sum_k a_mk, of this dtype.
// Its factor a is a_km, [... m], read transposed, one matrix. Where gemm_fused cannot do it, one more pass over a_km sums. Errors: as
// gemm.
Tensor gemm_with_row_sums(const Gemm& g, const Tensor& a_km, Dtype dtype);

}  // namespace ricci

// The ladder. Each rung is tested against a plain loop. The milliseconds are for the products [2048 256] [256 1024] and, in the column "one
// row", [1 256] [256 1024]; there the second factor is stored as [1024 256], as weights are. They were measured on one core of an AMD EPYC
// (Zen 5, 2026-11-26, `ricci-bench-rungs gemm gemm_row --threads 1`). The floors are 4.1 and 0.014 ms in f32. A minus is a product that
// the rung does not compute, or a GPU that was not measured yet.
//                            lines    ms  one row  gain
//   ops/first_rungs.cpp         91  1036    0.500  three loops in f64: each sum walks down a column of b
//   cuda/gemm/blocked.h        202   4.4    0.034  blocks that stay in the caches, sums that stay in registers (tile.h)
//   cuda/gemm/few_rows.cpp     109     -    0.013  at most 12 rows of a: reading b once takes the time
//   cuda/gemm/tiled.cu          72     -        -  any strides; tiles in shared memory: 16 uses of each number that is read from memory
//   cuda/toolkit/cublas.cpp     45     -        -  cuBLASLt: tensor cores, and bias, gelu or sums within the product
