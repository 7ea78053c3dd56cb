// One door for matrix products on every device:  c_mn = sum_k a_mk b_kn (+ c_mn) (+ bias_n), a batch of them at once.
// A matrix is a pointer and three strides, so that transposed matrices, views and heads inside a row need no copy.
#pragma once
#include "core/tensor.h"

namespace ricci {

// The place of element (row, column) of matrix i, in elements: i * batch_stride + row * row_stride + column * column_stride.
struct MatrixAt {
  int64_t row_stride, column_stride, batch_stride;
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
};

// On the CPU the bits do not depend on the number of threads. With k = 0 the sum is 0.
// Errors: a dtype that is not floating-point, negative extents, c_f32 without bf16, a device that is not available.
void gemm(const Gemm& g);

}  // namespace ricci
