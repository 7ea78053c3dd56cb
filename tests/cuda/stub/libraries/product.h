// A product as the stub of cuBLASLt computes it, element by element, with sums in f64.
#pragma once
#include <cublasLt.h>

#include <cmath>
#include <utility>

#include "core/bf16.h"

namespace stub {

struct Product {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  void* aux = nullptr;
  int64_t aux_leading = 0;

  bool is_biased() const { return (epilogue & CUBLASLT_EPILOGUE_BIAS) != 0; }
  bool has_gelu() const { return (epilogue & CUBLASLT_EPILOGUE_GELU) != 0; }
  bool uses_aux() const { return (epilogue & 128) != 0; }
};
struct Matrix {
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t batch = 1;
  int64_t stride = 0;
};
inline size_t size_of(cudaDataType_t type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }

inline double value(const void* data, cudaDataType_t type, int64_t i) {
  if (type == CUDA_R_64F) return static_cast<const double*>(data)[i];
  if (type == CUDA_R_32F) return static_cast<const float*>(data)[i];
  return static_cast<float>(static_cast<const ricci::bf16*>(data)[i]);
}
inline void store(void* data, cudaDataType_t type, int64_t i, double x) {
  if (type == CUDA_R_64F) static_cast<double*>(data)[i] = x;
  else if (type == CUDA_R_32F) static_cast<float*>(data)[i] = static_cast<float>(x);
  else static_cast<ricci::bf16*>(data)[i] = ricci::bf16(static_cast<float>(x));
}

// The place of element (i, j) of matrix z of op(m).
inline int64_t place(const Matrix& m, cublasOperation_t op, int64_t z, int64_t i, int64_t j) {
  return z * m.stride + (op == CUBLAS_OP_T ? j + i * m.leading : i + j * m.leading);
}

// GELU by tanh, and its slope.
inline std::pair<double, double> gelu(double x) {
  const double scale = std::sqrt(2 / std::acos(-1.0)), t = std::tanh(scale * (x + 0.044715 * x * x * x));
  return {x / 2 * (1 + t), (1 + t) / 2 + x / 2 * (1 - t * t) * scale * (1 + 3 * 0.044715 * x * x)};
}

// One call, as it runs on its stream.
struct Call {
  Product product;
  Matrix a_of, b_of, c_of, d_of;
  const void *a, *b, *c;
  void* d;
  double alpha, beta;
  bool rounded_parts;

  double sum(int64_t z, int64_t i, int64_t j) const {
    const auto k = static_cast<int64_t>(product.a == CUBLAS_OP_T ? a_of.rows : a_of.columns);
    double parts[4] = {};
    for (int64_t l = 0; l < k; ++l)
      parts[l * 4 / k] += value(a, a_of.type, place(a_of, product.a, z, i, l)) * value(b, b_of.type, place(b_of, product.b, z, l, j));
    double all = 0;
    for (const double part : parts) all += rounded_parts ? static_cast<double>(float(ricci::bf16(static_cast<float>(part)))) : part;
    return all;
  }
  double element(int64_t z, int64_t i, int64_t j) const {
    double x = alpha * sum(z, i, j);
    if (beta != 0) x += beta * value(c, c_of.type, place(c_of, CUBLAS_OP_N, z, i, j));
    if (product.is_biased()) x += value(product.bias, d_of.type, i);
    const int64_t beside = i + j * product.aux_leading;
    if (product.epilogue == CUBLASLT_EPILOGUE_DGELU) return x * gelu(value(product.aux, d_of.type, beside)).second;
    if (product.uses_aux()) store(product.aux, d_of.type, beside, x);
    return product.has_gelu() ? gelu(x).first : x;
  }
  void operator()() const {
    const auto rows = static_cast<int64_t>(d_of.rows), columns = static_cast<int64_t>(d_of.columns);
    for (int64_t z = 0; z < d_of.batch; ++z)
      for (int64_t j = 0; j < columns; ++j)
        for (int64_t i = 0; i < rows; ++i) store(d, d_of.type, place(d_of, CUBLAS_OP_N, z, i, j), element(z, i, j));
    const auto k = static_cast<int64_t>(product.b == CUBLAS_OP_T ? b_of.columns : b_of.rows);
    for (int64_t j = 0; j < columns && product.epilogue == CUBLASLT_EPILOGUE_BGRADB; ++j) {
      double of_column = 0;
      for (int64_t l = 0; l < k; ++l) of_column += value(b, b_of.type, place(b_of, product.b, 0, l, j));
      store(const_cast<void*>(product.bias), d_of.type, j, of_column);
    }
  }
};

}  // namespace stub
