// Matrix products on every device, a batch in one call:  c_mn = sum_k a_mk b_kn (+ c_mn) (+ bias_n).
//
// A matrix is a pointer and three strides. A flag "transposed" could not describe the heads inside a row: head n of x_bcd is a matrix [c k]
// with row stride d and its first element at n k. With strides, transposed matrices, views and heads need no copy.
#pragma once
#include "core/tensor.h"

namespace ricci {

// Element (row, column) of matrix i is at element i * batch_stride + row * row_stride + column * column_stride.
struct MatrixAt {
  int64_t row_stride, column_stride, batch_stride;
};

struct Gemm {
  Device device;
  Dtype dtype;  // the dtype of a, b, c and bias_n: f32, f64 or bf16; bf16 is summed in f32
  int64_t batch, m, n, k;
  const void *a, *b;
  MatrixAt a_at, b_at;
  void* c;  // must overlap neither a nor b
  MatrixAt c_at;
  bool accumulate = false;       // adds the product to c instead of overwriting c
  const void* bias_n = nullptr;  // added to every row of every matrix
  bool c_f32 = false;            // with bf16 only: c is f32
  void* row_sums_m = nullptr;    // set only by gemm_with_row_sums: cuBLASLt also writes sum_k a_mk here, in the type of c
};

// A tensor as one of the matrices of a product: its innermost index is the column, and all others together are the row.
struct Matrix {
  Tensor elements;
  int64_t rows, columns;
  MatrixAt strides;
  Matrix(const Tensor& t);
  Matrix transposed() const;  // no copy: swaps the two strides
};

// c_mn = a_mk b_kn (+ bias_n), to be computed by gemm() below:   gemm(product(y_rf, x_rd, Matrix(w_fd).transposed(), bias_f));
Gemm product(const Matrix& c_mn, const Matrix& a_mk, const Matrix& b_kn, const Tensor& bias_n = {});

// On the CPU, the results are bitwise identical for any number of threads. With k = 0, the sum is 0.
// Errors: the dtype is not floating-point, an extent is negative, c_f32 is used without bf16, the device is not available.
void gemm(const Gemm& g);

// For the gradients of a weight and its bias: computes the product g (one matrix) and returns sums_m = sum_k a_mk in this dtype. Its factor
// a is a_km, [... m], read transposed. On cuda, cuBLASLt computes the sums during the product. If cuBLASLt cannot, a line is printed to
// stderr. Then, and on other devices, a second pass over a_km computes the sums. Errors: as for gemm.
Tensor gemm_with_row_sums(const Gemm& g, const Tensor& a_km, Dtype dtype);

}  // namespace ricci

// The ladder of implementations. Each is tested against a plain loop. The milliseconds are for the product [2048 256] [256 1024] and, in
// the column "one row", for [1 256] [256 1024] with the second factor stored as [1024 256], like a weight. They were measured on one core
// of an AMD EPYC (Zen 5, 2026-11-26, `ricci-bench-rungs gemm gemm_row --threads 1`). The least possible times are 4.1 and 0.014 ms in f32.
// A minus means that the implementation does not compute this product or was not measured (GPU).
//                            lines    ms  one row  idea
//   ops/first_rungs.cpp        105  1036    0.500  three loops in f64: each sum reads down a column of b
//   cuda/gemm/blocked.h        210   4.4    0.034  blocks that stay in the caches, sums that stay in registers (tile.h)
//   cuda/gemm/few_rows.cpp     110     -    0.013  at most 12 rows of a: nearly all of the time goes into reading b once
//   cuda/gemm/tiled.cu          70     -        -  any strides; tiles in shared memory: 16 uses of each number that is read from memory
//   cuda/toolkit/cublas.cpp    200     -        -  cuBLASLt: tensor cores, and bias and row sums within the product
